// SPDX-License-Identifier: Apache-2.0
#include "memory/stack_slots.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/check.hpp"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

namespace sojourn::detail {

stack_slots slots;

namespace {

// Slots become readable and writable in chunks of this many, so that the mapping is split rarely,
// but in chunks of at most this many bytes, because strict overcommit charges writable addresses.
constexpr std::uint64_t slots_per_chunk = 64;
constexpr std::uint64_t chunk_bytes_max = std::uint64_t{16} << 20;

/// How many free slots keep their memory; that of further ones is given back, in batches of half as
/// many slots. When stacks are long, fewer slots keep their memory, because each may have been used
/// in whole.
std::size_t warm_slots(std::size_t most) {
  constexpr std::uint64_t warm_bytes = std::uint64_t{2} << 30;
  return std::clamp<std::size_t>(warm_bytes / addresses.stack_bytes, 4, most);
}
// The limit of that number at first, and when fibers come and go in crowds: their stacks would
// otherwise be given back to the system and taken from it again each time (3 us each).
constexpr std::size_t warm_at_first = 256;
constexpr std::size_t warm_in_crowds = 1024;

char* at(std::uint64_t address) { return reinterpret_cast<char*>(address); }

/// A value that a program does not write by chance: it differs at each address.
std::uint64_t canary(const std::uint64_t* word) {
  return reinterpret_cast<std::uint64_t>(word) * 0x9e3779b97f4a7c15u;
}

}  // namespace

bool overcommit_is_strict() {
  char mode = 0;
  if (const int file = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC); file >= 0) {
    if (read(file, &mode, 1) != 1) mode = 0;
    close(file);
  }
  return mode == '2';
}

void stack_slots::attach(int rank, piece* (*watch)(), bool charges_addresses) {
  watch_ = watch;
  // A huge page takes milliseconds at first touch, and 2 MiB; a stack rarely uses 16 KiB. The
  // advice is given for the whole region at once, so that slots opened later have the same
  // attributes as their neighbours, and extend their mapping.
  madvise(at(addresses.stacks), addresses.unit, MADV_NOHUGEPAGE);
  // qemu-user accepts any advice, even one that does not exist, and ignores it.
  guards_by_advice_ = madvise(at(addresses.stacks), guard_bytes, -1) != 0;
  table_ = static_cast<stack_slot*>(runtime_memory(addresses.slot_count() * sizeof(stack_slot)));
  main_slots_ = static_cast<std::uint32_t>(addresses.main_slots());
  warm_slots_ = warm_slots(warm_at_first);
  charges_addresses_ = charges_addresses;
  fibers_max_ =
      std::min<std::size_t>(address_map::fibers_most,
                            addresses.slots_per_rank() - main_slots_ - address_map::slots_spare);
  first_ = static_cast<std::uint32_t>(addresses.slots_per_rank() * static_cast<unsigned>(rank));
  next_ = first_ + main_slots_;
  open(first_);
}

void stack_slots::open_now(std::uint32_t index) {
  std::uint64_t low_address = charges_addresses_ ? low(index) + guard_bytes : begin(index);
  std::uint64_t bytes = (charges_addresses_ ? high(index) : end(index)) - low_address;
  if (std::uint64_t closed = table_[index].closed_from_page * guard_bytes; closed != 0) {
    const std::uint64_t from = low(index) + closed;
    if (mprotect(at(from), high(index) - from, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    table_[index].closed_from_page = 0;
    table_[index].open = true;
    return;
  }
  if (!is_main(index) && !charges_addresses_) {
    // Opens a whole chunk at once. If the chunk is open already, the slot lacks only its guard
    // page.
    std::uint64_t slot_bytes = addresses.slot_bytes();
    std::uint64_t chunk =
        std::max(slot_bytes, std::min(slots_per_chunk * slot_bytes, chunk_bytes_max));
    std::uint64_t from = low_address / chunk * chunk;
    std::uint64_t partition = std::uint64_t{1} << addresses.stacks_shift;
    std::uint64_t partition_low = low_address / partition * partition;
    std::uint64_t to = std::min(from + chunk, partition_low + partition);
    from = std::max(from, partition_low + main_slots_ * slot_bytes);
    bool chunk_is_open = false;
    for (std::uint64_t a = from; a < to; a += slot_bytes) {
      const stack_slot& slot = table_[index_of(a)];
      chunk_is_open |= slot.open || slot.closed_from_page != 0;
    }
    if (chunk_is_open) {
      table_[index].open = true;
      guard(index);
      return;
    }
    low_address = from;
    bytes = to - from;
  }
  if (mprotect(at(low_address), bytes, PROT_READ | PROT_WRITE) != 0) {
    if (!charges_addresses_) throw std::bad_alloc();
    // The process may have all the mappings that the system allows. Several slots that are opened
    // together are one mapping.
    charges_addresses_ = false;
    return open_now(index);
  }
  table_[index].open = true;
  if (!charges_addresses_) guard(index);
}

void stack_slots::close_above(std::uint32_t index, std::uint64_t hi) {
  std::uint64_t offset = hi - low(index);
  std::uint64_t bytes = high(index) - hi;
  if (index / addresses.slots_per_rank() == first_ / addresses.slots_per_rank()) return;
  if (bytes == 0 || offset % guard_bytes != 0 || table_[index].unguarded) return;
  if (table_[index].closed_from_page == 0 && mprotect(at(hi), bytes, PROT_NONE) != 0) {
    return;  // the limit on mappings is reached: this slot goes unchecked
  }
  table_[index].closed_from_page = static_cast<std::uint32_t>(offset / guard_bytes);
  table_[index].open = false;
}

bool stack_slots::guard(std::uint64_t low_address, std::uint64_t high_address) {
  const std::size_t bytes = high_address - low_address;
  if (guards_by_advice_) {
    if (madvise(at(low_address), bytes, MADV_GUARD_INSTALL) == 0) return true;
    guards_by_advice_ = false;
  }
  // Splits the mapping, so it fails when the process has all the mappings that the system allows.
  return mprotect(at(low_address), bytes, PROT_NONE) == 0;
}

void stack_slots::guard(std::uint32_t index) {
  // Nothing lies above a stack. If that part has no guard, only one error goes unnoticed: an index
  // that is too large for an array of the oldest frame.
  if (high(index) < end(index)) guard(high(index), end(index));
  if (guard(begin(index), low(index) + guard_bytes)) return;
  auto* words = reinterpret_cast<std::uint64_t*>(low(index));
  for (std::uint64_t* w = words; w < words + guard_bytes / sizeof *w; ++w) *w = canary(w);
  table_[index].unguarded = true;
  table_[index].in_place = watch_();
}

bool stack_slots::canary_is_whole(std::uint32_t index) const {
  auto* words = reinterpret_cast<const std::uint64_t*>(low(index));
  std::uint64_t difference = 0;
  for (const std::uint64_t* w = words; w < words + guard_bytes / sizeof *w; ++w) {
    difference |= *w ^ canary(w);
  }
  return difference == 0;
}

void stack_slots::overflowed(std::uint32_t index) const {
  die("stack overflow: %s has used more than its %llu KiB of stack and overwritten the memory "
      "below; use less stack (recursion, large local arrays), or %s. The stack had no guard page, "
      "which would have shown where this happened, because the process already has as many "
      "mappings as vm.max_map_count allows",
      is_main(index) ? "a main fiber" : "a fiber",
      static_cast<unsigned long long>((high(index) - low(index)) >> 10), how_to_enlarge(index));
}

std::uint32_t stack_slots::acquire() {
  std::uint32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
    if (free_.size() < trimmed_) {
      trimmed_ = free_.size();
      if (++trimmed_in_vain_ % warm_slots_ == 0) {
        warm_slots_ = std::min(2 * warm_slots_, warm_slots(warm_in_crowds));
      }
    }
  } else {
    if (next_ >= first_ + addresses.slots_per_rank()) throw std::bad_alloc();
    index = next_++;
    open(index);
  }
  table_[index].users = 1;
  return index;
}

void stack_slots::release(std::uint32_t index) {
  SOJOURN_CHECK(table_[index].users > 0, "slot %u is released twice", index);
  check(index);
  if (--table_[index].users > 0) return;
  free_.push_back(index);
  if (free_.size() - trimmed_ > warm_slots_ + warm_slots_ / 2) trim();
}

void stack_slots::restore(std::uint32_t handed_out) {
  for (next_ = first_ + main_slots_; handed_out > 0; --handed_out) open(next_++);
}

void stack_slots::free_unused() {
  for (std::uint32_t i = next_; i-- > first_ + main_slots_;) {
    if (table_[i].users == 0) free_.push_back(i);
  }
}

void stack_slots::trim() {
  // The oldest entries have been free the longest. Neighbouring slots are trimmed in one call.
  std::size_t until = free_.size() - warm_slots_;
  std::sort(free_.begin() + static_cast<std::ptrdiff_t>(trimmed_),
            free_.begin() + static_cast<std::ptrdiff_t>(until));
  for (std::size_t i = trimmed_; i < until;) {
    std::size_t j = i;
    // Leaves out slots in which pieces are in place, and slots with a canary, whose list is never
    // empty.
    while (j < until && free_[j] == free_[i] + (j - i) && table_[free_[j]].in_place == nullptr) ++j;
    // The guards between these stacks stay.
    if (j > i) madvise(at(low(free_[i])), high(free_[j - 1]) - low(free_[i]), MADV_DONTNEED);
    i = std::max(j, i + 1);
  }
  trimmed_ = until;
}

}  // namespace sojourn::detail
