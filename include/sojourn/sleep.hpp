// SPDX-License-Identifier: Apache-2.0
// Waiting for a time.
#pragma once

#include <chrono>
#include <cstdint>

#include "sojourn/clock.hpp"

namespace sojourn {

namespace detail {

/// A time of now_ns() that never comes.
inline constexpr std::uint64_t never_ns = ~std::uint64_t{0};

/// As now_ns() counts: std::chrono::steady_clock is the same clock, but for what a restored job is
/// ahead or behind. A time beyond its range is never.
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

void sleep_until_ns(std::uint64_t deadline_ns);

}  // namespace detail

/// Suspends the running fiber, also main's, until `time` has come: never for less; for longer when
/// another fiber of the rank computes then, because fibers are not interrupted. The rank runs other
/// fibers meanwhile, and sleeps when it has none. If `time` is past, other fibers run once, as with
/// yield().
/// Requires: a fiber calls it (not code before run(), or of another thread). Suspends. Errors:
/// none.
template <class Duration>
void sleep_until(std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
  detail::sleep_until_ns(detail::ns_of(time));
}

/// The same for `span` from now on.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> span) {
  detail::sleep_until_ns(detail::ns_after(span));
}

}  // namespace sojourn
