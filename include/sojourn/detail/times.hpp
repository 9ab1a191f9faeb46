// SPDX-License-Identifier: Apache-2.0
// Times and spans of std::chrono as times of now_ns().
#pragma once

#include <chrono>
#include <cstdint>

#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

/// A time of std::chrono::steady_clock as now_ns() counts it. The two are one clock, except that
/// now_ns() is ahead or behind in a restored job. A time beyond its range is never_ns.
template <class Duration>
std::uint64_t ns_of(std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
  using std::chrono::duration_cast;
  using std::chrono::nanoseconds;
  // In floating point, to see whether the conversion overflows.
  auto about = std::chrono::duration<double, std::nano>(time.time_since_epoch()).count();
  if (about <= 0) return 0;
  if (about >= 9e18) return never_ns;
  // Never early: rounded up.
  return static_cast<std::uint64_t>(
             std::chrono::ceil<nanoseconds>(time.time_since_epoch()).count()) +
         clock_ahead_ns;
}

/// The time `span` from now.
std::uint64_t ns_from_now(double about_ns, std::int64_t exact_ns);
template <class Rep, class Period>
std::uint64_t ns_after(std::chrono::duration<Rep, Period> span) {
  auto about = std::chrono::duration<double, std::nano>(span).count();
  bool fits = about > 0 && about < 9e18;
  return ns_from_now(about, fits ? std::chrono::ceil<std::chrono::nanoseconds>(span).count() : 0);
}

}  // namespace sojourn::detail
