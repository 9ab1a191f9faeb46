// SPDX-License-Identifier: Apache-2.0
//
// What the figures were measured on: the processor, and how far apart the cores are.
#pragma once

#include <string>
#include <vector>

#include <compiled_json.hpp>

#include "driver/installation.hpp"

namespace bench {

/// The least round trip of one cache line between two cores, without any runtime.
struct core_pair {
  int first;
  int second;
  double round_trip_ns;
};

/// Cores whose round trip takes less are close, others are distant.
constexpr double distant_from_ns = 200;

class machine {
 public:
  /// Measures each pair of the cores that this process may use, of the first eight.
  /// Errors: failure when the peer without a runtime does not run.
  explicit machine(const installation& here);

  /// Measures once more the pair that two bound ranks have, and returns all that was found. A
  /// virtual machine's cores change their distance: what was measured in between is of close or
  /// distant cores only where both measurements say so.
  nlohmann::json at_the_end();
  /// One line for people. Requires: at_the_end().
  std::string text() const;

 private:
  double measure(int first, int second) const;

  const installation& here_;
  std::string processor_;
  int cores_ = 0;
  std::vector<core_pair> pairs_;
  core_pair bound_{0, 1, 0};  // at the start
  double at_the_end_ns_ = 0;
  std::string distance_;
};

}  // namespace bench
