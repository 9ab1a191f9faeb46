// SPDX-License-Identifier: Apache-2.0
// The relaxation over Sojourn: a child for each point, which calls methods of its neighbours.
#pragma once

#include <string>

#include "common/execution_meter.hpp"
#include "sor/kernel/grid.hpp"

namespace apps::sor {

/// The same on every rank.
struct result {
  executions measured;
  std::string fault;  ///< Where the grid differs from one loop's; empty when it does nowhere.
};

/// Collective. Suspends.
result relax(const settings& chosen);

}  // namespace apps::sor
