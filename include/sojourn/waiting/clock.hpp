// SPDX-License-Identifier: Apache-2.0
// Time, as the runtime sees it.
#pragma once

#include <cstdint>

namespace sojourn {

namespace detail {
/// By how many nanoseconds now_ns() is ahead of the system's monotonic clock, modulo 2^64. Set
/// before run() runs main.
extern std::uint64_t clock_ahead_ns;
/// A time of now_ns() that never comes.
inline constexpr std::uint64_t never_ns = ~std::uint64_t{0};
}  // namespace detail

/// Nanoseconds since some fixed moment; never goes back; the same clock on all ranks of a host. In
/// a restored job the clock goes on from the time of the checkpoint.
std::uint64_t now_ns();

/// The processor's cycle or timer count: cheap, for short intervals on one rank.
inline std::uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();  // the header of intrinsics takes a second to compile
#else
  std::uint64_t t;
  asm volatile("mrs %0, cntvct_el0" : "=r"(t));
  return t;
#endif
}

}  // namespace sojourn
