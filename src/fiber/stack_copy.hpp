// SPDX-License-Identifier: Apache-2.0
// Copying frames, and telling the address sanitizer of stacks that come and go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "sojourn/detail/asan.hpp"

#if SOJOURN_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace sojourn::detail {

/// Copies bytes of frames. Frames hold poisoned red zones under the address sanitizer, which a
/// memcpy that it intercepts would report.
[[gnu::always_inline]] inline void copy_frames(void* to, const void* from, std::size_t bytes) {
#if SOJOURN_ASAN && defined(__x86_64__)
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  std::memcpy(to, from, bytes);
#endif
}

/// Forgets what the sanitizer knew of frames in [low, high): they are gone, or have moved.
inline void forget_frames([[maybe_unused]] std::uint64_t low, [[maybe_unused]] std::uint64_t high) {
#if SOJOURN_ASAN
  constexpr std::uint64_t most = 512u << 10;
  low = std::max(low, high - std::min(high, most));
  __asan_unpoison_memory_region(reinterpret_cast<void*>(low), high - low);
#endif
}

/// Around every switch of stacks: announce_switch before it, with the bounds of the new stack, and
/// confirm_switch after it, on the new stack.
inline void announce_switch([[maybe_unused]] std::uint64_t low,
                            [[maybe_unused]] std::uint64_t high) {
#if SOJOURN_ASAN
  __sanitizer_start_switch_fiber(nullptr, reinterpret_cast<void*>(low), high - low);
#endif
}
inline void confirm_switch() {
#if SOJOURN_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

}  // namespace sojourn::detail
