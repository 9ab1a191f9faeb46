// SPDX-License-Identifier: Apache-2.0
//
// What breakdowns need of one rank alone: the time of a switch, and the unit of the ticks.
#pragma once

#include <cstdint>
#include <vector>

#include <sojourn/sojourn.hpp>

#include "common/timing.hpp"

namespace bench {

/// Leaves a fiber and comes back to it through the dispatcher.
inline std::vector<double> time_switches(const batch_plan& plan) {
  return time_batches(plan, [](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) sojourn::yield();
  });
}

/// Ticks of the processor's counter in a nanosecond.
inline std::vector<double> ticks_a_nanosecond() {
  const std::uint64_t start_ns = clock_ns();
  const std::uint64_t start_ticks = sojourn::ticks();
  while (clock_ns() - start_ns < 20'000'000) {
  }
  return {static_cast<double>(sojourn::ticks() - start_ticks) /
          static_cast<double>(clock_ns() - start_ns)};
}

}  // namespace bench
