// SPDX-License-Identifier: Apache-2.0
//
// Parts of bench_rpc: one-sided access to windows, and what fibers and locks cost beside calls.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "common/two_ranks.hpp"

namespace bench {

inline void require(bool right, std::string_view operation) {
  if (!right) throw std::runtime_error(std::string(operation) + ": other bytes arrived than sent");
}

// rpc_windows.cpp
figures time_window(std::string_view operation, const batch_plan& plan);

// rpc_fibers.cpp
std::vector<double> time_switches_among(const batch_plan& plan);
std::vector<double> time_served(const batch_plan& plan);
std::vector<double> time_creation(const batch_plan& plan);
std::vector<double> time_locks(const batch_plan& plan);

}  // namespace bench
