// SPDX-License-Identifier: Apache-2.0
// Runs of pages of a thread's heap.
#include <algorithm>

#include "base/check.hpp"
#include "memory/thread_arena.hpp"
#include "memory/thread_arena_extent.hpp"

namespace sojourn::detail {

using namespace arena;

char* thread_arena::allocate_pages(std::uint64_t count, bool for_slab) {
  extent* e = first_;
  std::uint64_t first = 0;
  while (e != nullptr && (first = e->find(count)) == 0) e = e->next;
  if (e == nullptr) {
    e = grow(count);
    first = e->find(count);
  }
  fill_bits<true>(e->used(), first, count);
  if (for_slab) fill_bits<true>(e->slabs(), first, 1);
  e->pages_free -= static_cast<std::uint32_t>(count);
  auto end = static_cast<std::uint32_t>(first + count);
  if (e->lowest_free == first) e->lowest_free = end;
  e->touched = std::max(e->touched, end);
  return e->page_at(first);
}

void thread_arena::free_pages(extent* e, std::uint64_t first, std::uint64_t count) {
  fill_bits<false>(e->used(), first, count);
  e->pages_free += static_cast<std::uint32_t>(count);
  e->lowest_free = std::min(e->lowest_free, static_cast<std::uint32_t>(first));
  if (e->bytes() > grown_extent_bytes && e->pages_free == e->pages - e->record_pages() &&
      extents.is_home(e->address())) [[unlikely]] {
    shrink(e);
  }
}

/// Gives back an extent that was made for one large block, so that a vector which grows does not
/// use up the partition.
void thread_arena::shrink(extent* e) {
  extent* before = first_;
  while (before->next != e) before = before->next;
  before->next = e->next;
  if (last_ == e) last_ = before;
  std::uint64_t address = e->address();
  std::uint64_t bytes = e->bytes();
  extents.retire(address, bytes, std::uint64_t{e->touched} * page);
  extents.give_back(address, bytes);
}

/// Adds an extent with room for a run of this many pages. It is of this rank's partition, whatever
/// ranks the other extents are from. When the partition has no long range left, the shortest that
/// suffices will do.
thread_arena::extent* thread_arena::grow(std::uint64_t pages) {
  // The records need pages, and these need records: compute again with them included.
  std::uint64_t records = pages_of(extent::record_bytes(pages + 1, sizeof(extent)));
  records =
      pages_of(extent::record_bytes(pages + records + first_extent_bytes / page, sizeof(extent)));
  std::uint64_t least = (pages + records) * page;
  least = (least + first_extent_bytes - 1) / first_extent_bytes * first_extent_bytes;
  std::uint64_t bytes = std::max(least, next_extent_bytes_);
  std::uint64_t address;
  while ((address = extents.take(bytes)) == 0) {
    if (bytes == least) throw std::bad_alloc();
    bytes = std::max(least, bytes / 2);
  }
  extent* e = extent::make(address, bytes, sizeof(extent));
  last_->next = e;
  last_ = e;
  next_extent_bytes_ = std::min(2 * next_extent_bytes_, grown_extent_bytes);
  return e;
}

thread_arena::extent* thread_arena::extent_of(const void* p) const {
  auto address = reinterpret_cast<std::uint64_t>(p);
  extent* e = first_;
  while (e != nullptr && address - e->address() >= e->bytes()) e = e->next;
  SOJOURN_CHECK(e != nullptr, "%p is not of this thread's heap (%p)", p,
                static_cast<const void*>(this));
  return e;
}

}  // namespace sojourn::detail
