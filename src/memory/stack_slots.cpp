// SPDX-License-Identifier: Apache-2.0
#include "memory/stack_slots.hpp"

#include <sys/mman.h>

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

// Slots become readable and writable this many at a time, so that the mapping is split rarely.
constexpr std::uint32_t slots_per_chunk = 64;
// Free slots beyond this many keep no memory; given back in batches of half as many.
constexpr std::size_t warm_slots = 256;

char* at(std::uint64_t address) { return reinterpret_cast<char*>(address); }

}  // namespace

void stack_slots::attach(int rank) {
  table_ = static_cast<stack_slot*>(runtime_memory(addresses.slot_count() * sizeof(stack_slot)));
  main_slots_ = static_cast<std::uint32_t>(address_map::main_stack_bytes >> addresses.slot_shift);
  if (main_slots_ == 0) main_slots_ = 1;
  first_ = static_cast<std::uint32_t>(addresses.slots_per_rank() * static_cast<unsigned>(rank));
  next_ = first_ + main_slots_;
  open(first_);
}

void stack_slots::open_now(std::uint32_t index) {
  std::uint64_t low_address = low(index);
  std::uint64_t bytes = high(index) - low_address;
  if (!is_main(index)) {
    // A whole chunk at once; chunks already open are only made writable again, which is harmless.
    std::uint64_t chunk = std::uint64_t{slots_per_chunk} << addresses.slot_shift;
    std::uint64_t from = low_address / chunk * chunk;
    std::uint64_t partition = std::uint64_t{1} << addresses.stacks_shift;
    std::uint64_t partition_low = low_address / partition * partition;
    std::uint64_t to = std::min(from + chunk, partition_low + partition);
    from = std::max(from, partition_low + address_map::main_stack_bytes);
    bool chunk_is_open = false;
    for (std::uint64_t a = from; a < to; a += std::uint64_t{1} << addresses.slot_shift) {
      chunk_is_open |= table_[index_of(a)].open;
    }
    if (chunk_is_open) {
      table_[index].open = true;
      guard(index);
      return;
    }
    low_address = from;
    bytes = to - from;
  }
  if (mprotect(at(low_address), bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  // A huge page costs milliseconds at first touch and 2 MiB; a stack rarely uses 16 KiB.
  madvise(at(low_address), bytes, MADV_NOHUGEPAGE);
  table_[index].open = true;
  guard(index);
}

void stack_slots::guard(std::uint32_t index) {
  char* page = at(low(index));
  if (guards_by_advice_) {
    if (madvise(page, guard_bytes, MADV_GUARD_INSTALL) == 0) return;
    guards_by_advice_ = false;
  }
  // Splits the mapping in two. Past the system's limit on mappings a slot goes without a guard.
  (void)mprotect(page, guard_bytes, PROT_NONE);
}

std::uint32_t stack_slots::acquire() {
  std::uint32_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
    trimmed_ = std::min(trimmed_, free_.size());
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
  if (--table_[index].users > 0) return;
  free_.push_back(index);
  if (free_.size() - trimmed_ > warm_slots + warm_slots / 2) trim();
}

void stack_slots::trim() {
  // The oldest entries are the coldest. Neighbouring slots go in one call.
  std::size_t until = free_.size() - warm_slots;
  std::sort(free_.begin() + static_cast<std::ptrdiff_t>(trimmed_),
            free_.begin() + static_cast<std::ptrdiff_t>(until));
  std::uint64_t slot_bytes = std::uint64_t{1} << addresses.slot_shift;
  for (std::size_t i = trimmed_; i < until;) {
    std::size_t j = i + 1;
    while (j < until && free_[j] == free_[j - 1] + 1) ++j;
    // Pieces that visit such a slot in place keep it out of the range.
    bool visited = false;
    for (std::size_t k = i; k < j; ++k) visited |= table_[free_[k]].in_place != nullptr;
    if (!visited) {
      madvise(at(low(free_[i])), (j - i) * slot_bytes, MADV_DONTNEED);
    }
    i = j;
  }
  trimmed_ = until;
}

}  // namespace sojourn::detail
