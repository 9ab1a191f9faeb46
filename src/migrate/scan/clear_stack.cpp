// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan/clear_stack.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"

namespace sojourn::detail {

namespace {

/// Clears the stack below the caller's frame.
[[gnu::noinline]] void clear_bytes_below(std::size_t bytes) {
  // The room is taken before it is cleared, because a signal handler may run meanwhile, with its
  // frame below the stack pointer.
  auto* room = static_cast<unsigned char*>(__builtin_alloca(bytes));
  std::memset(room, 0, bytes);
  asm volatile("" : : "r"(room) : "memory");
}

}  // namespace

void clear_stack_below(std::size_t most) {
  constexpr std::size_t margin = 1024;
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (!addresses.in_stacks(here)) return;
  const std::uint64_t bottom = slots.low(slots.index_of(here)) + 2 * stack_slots::guard_bytes;
  if (here < bottom + 2 * margin) return;
  clear_bytes_below(std::min<std::size_t>(most, here - bottom - margin));
}

void clear_used_stack_below() {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t here =
      reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)) & ~(page - 1);
  if (!addresses.in_stacks(here)) return;
  const std::uint64_t bottom = slots.low(slots.index_of(here)) + 2 * stack_slots::guard_bytes;
  // A stack is used from the top down without a gap, so nothing was used below the first page that
  // has no memory.
  static unsigned char present[2048];
  const std::uint64_t pages = std::min<std::uint64_t>(std::size(present), (here - bottom) / page);
  if (here <= bottom ||
      mincore(reinterpret_cast<void*>(here - pages * page), pages * page, present) != 0) {
    return;
  }
  std::uint64_t used = 0;
  while (used < pages && (present[pages - 1 - used] & 1) != 0) ++used;
  clear_stack_below(used * page);
}

}  // namespace sojourn::detail
