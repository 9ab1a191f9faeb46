// SPDX-License-Identifier: Apache-2.0
// Waiting for a time.
#pragma once

#include <chrono>
#include <cstdint>

#include "sojourn/detail/times.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn {

namespace detail {

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
