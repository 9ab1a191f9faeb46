// SPDX-License-Identifier: Apache-2.0
#include "sojourn/clock.hpp"

#include <ctime>

namespace sojourn {

std::uint64_t detail::clock_ahead_ns = 0;

std::uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec) + detail::clock_ahead_ns;
}

}  // namespace sojourn
