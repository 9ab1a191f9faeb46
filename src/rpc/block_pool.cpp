// SPDX-License-Identifier: Apache-2.0
// Memory of long blocks (detail/marshalled.hpp), which is used again when it was given back.
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <vector>

#include "sojourn/detail/marshalled.hpp"

namespace sojourn::detail {

namespace {

// Shorter blocks come from the C library.
constexpr std::size_t pooled_from = 256u << 10;
// How many bytes of free blocks a rank keeps at most. It never keeps more than it has sent or
// received at a time.
constexpr std::size_t pooled_max = 256u << 20;
// For free blocks beyond this, the system is told that it may take back their memory. That is a
// system call for each block, which most programs do not need.
constexpr std::size_t pooled_for_good = 64u << 20;
// Blocks of this size or more lie in large pages: with pages of 4 KiB, the first use of new memory
// takes longer than a copy into it.
constexpr std::size_t large_from = 4u << 20;
constexpr std::size_t large_page = 2u << 20;

std::align_val_t alignment_of(std::size_t capacity) {
  return std::align_val_t(capacity >= large_from ? large_page : 16);
}

struct free_block {
  std::byte* memory;
  std::size_t capacity;
};
struct block_pool {
  std::vector<free_block> free;
  std::size_t bytes = 0;
};
block_pool& pool() {
  // Never destroyed, because buffers in static storage give back their blocks when the process
  // ends.
  static block_pool& p = *new block_pool;
  return p;
}

/// Lets the system take back the whole pages of the block, which it does when it has no others.
void give_back_when_needed(std::byte* memory, std::size_t bytes) {
  constexpr std::uintptr_t page = 4096;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t from = (first + page - 1) & ~(page - 1);
  const std::uintptr_t to = (first + bytes) & ~(page - 1);
  madvise(reinterpret_cast<void*>(from), to - from, MADV_FREE);
}

}  // namespace

pooled_block::pooled_block(std::size_t bytes) : capacity_(std::max<std::size_t>(bytes, 16)) {
  if (capacity_ >= pooled_from) {
    std::vector<free_block>& free = pool().free;
    // Takes the smallest free block that is long enough, unless most of it would be wasted.
    auto best = free.end();
    for (auto it = free.begin(); it != free.end(); ++it) {
      if (it->capacity < capacity_ || it->capacity / 2 > capacity_) continue;
      if (best == free.end() || it->capacity < best->capacity) best = it;
    }
    if (best != free.end()) {
      memory_ = best->memory;
      capacity_ = best->capacity;
      pool().bytes -= capacity_;
      *best = free.back();
      free.pop_back();
      return;
    }
  }
  memory_ = static_cast<std::byte*>(::operator new(capacity_, alignment_of(capacity_)));
  want_large_pages(memory_, capacity_);
}

pooled_block::~pooled_block() {
  if (memory_ == nullptr) return;
  if (capacity_ >= pooled_from && pool().bytes + capacity_ <= pooled_max) {
    try {
      pool().free.push_back({memory_, capacity_});
      pool().bytes += capacity_;
      if (pool().bytes > pooled_for_good) give_back_when_needed(memory_, capacity_);
      return;
    } catch (const std::bad_alloc&) {  // Then the block is not kept.
    }
  }
  ::operator delete(memory_, alignment_of(capacity_));
}

void want_large_pages(void* memory, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t from = (first + large_page - 1) & ~(large_page - 1);
  const std::uintptr_t to = (first + bytes) & ~(large_page - 1);
  // Fails if the system has no large pages; then the block has small ones.
  if (bytes >= large_from && from < to) {
    madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
  }
}

}  // namespace sojourn::detail
