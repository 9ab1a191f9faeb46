// SPDX-License-Identifier: Apache-2.0
#include "memory/thread_arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <type_traits>

#include "base/check.hpp"
#include "memory/thread_arena_extent.hpp"

namespace sojourn::detail {

using namespace arena;

static_assert(page == thread_arena::page_bytes);
static_assert(small_bytes_max == thread_arena::small_bytes_max);

namespace {

// Freed runs at least this long give their memory back to the system.
constexpr std::uint64_t cold_run_bytes = 1u << 20;
// A slab is carved into blocks in steps of about this size. What is not carved does not travel.
constexpr std::size_t carve_bytes = 512;

/// The bytes that a block with more than the usual alignment takes: a power of two, or, above 512,
/// pages.
std::size_t aligned_bytes(std::size_t bytes, std::size_t alignment) {
  std::size_t least = std::max(bytes, alignment);
  if (least > 512) return std::max<std::size_t>(bytes, thread_arena::small_bytes_max + 1);
  return std::bit_ceil(least);
}

}  // namespace

thread_arena::thread_arena(extent* first)
    : no_slab_{}, first_(first), last_(first), next_extent_bytes_(2 * first_extent_bytes) {
  std::fill_n(with_room_, class_count, &no_slab_);
}

thread_arena* thread_arena::make() {
  static_assert(class_count == class_bytes.size());
  static_assert(sizeof(slab) == slab_header_bytes);
  static_assert(sizeof(extent) % alignof(thread_arena) == 0);
  static_assert(std::is_trivially_copyable_v<arena_descriptor>);
  std::uint64_t address = extents.take(first_extent_bytes);
  if (address == 0) throw std::bad_alloc();
  extent* e = extent::make(address, first_extent_bytes, sizeof(extent) + sizeof(thread_arena));
  return ::new (static_cast<void*>(e + 1)) thread_arena(e);
}

// Small blocks.

void* thread_arena::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes <= small_bytes_max && alignment <= quantum) [[likely]] {
    return allocate_small(class_of(bytes));
  }
  return allocate_other(bytes, alignment);
}

[[gnu::always_inline]] inline void* thread_arena::allocate_small(unsigned size_class) {
  slab* s = with_room_[size_class];
  if (free_block* b = s->free; b != nullptr) [[likely]] {
    s->free = b->next;
    ++s->used;
    return b;
  }
  return refill(size_class);
}

/// Called when the first slab of the class has no free block in its list.
[[gnu::noinline]] void* thread_arena::refill(unsigned size_class) {
  slab* s = with_room_[size_class];
  while (s->free == nullptr) {
    std::size_t capacity = s == &no_slab_ ? 0 : class_capacity[size_class];
    if (s->carved < capacity) {
      std::size_t bytes = class_bytes[size_class];
      std::size_t count =
          std::min(std::max<std::size_t>(carve_bytes / bytes, 1), capacity - s->carved);
      char* block = reinterpret_cast<char*>(s) + first_block(size_class) + s->carved * bytes;
      s->carved = static_cast<std::uint8_t>(s->carved + count);
      s->free = reinterpret_cast<free_block*>(block);
      for (; count > 1; --count, block += bytes) {
        ::new (static_cast<void*>(block)) free_block{reinterpret_cast<free_block*>(block + bytes)};
      }
      ::new (static_cast<void*>(block)) free_block{nullptr};
    } else {
      if (s != &no_slab_) unlink(s);
      if (with_room_[size_class] == &no_slab_) add_slab(size_class);
      s = with_room_[size_class];
    }
  }
  return allocate_small(size_class);
}

void thread_arena::add_slab(unsigned size_class) {
  char* at = allocate_pages(1, true);
  extent* e = extent_of(at);
  auto index = static_cast<std::uint32_t>((at - e->page_at(0)) / static_cast<std::ptrdiff_t>(page));
  auto* s = ::new (static_cast<void*>(at)) slab;
  *s = {nullptr, nullptr, nullptr, index, static_cast<std::uint8_t>(size_class), 0, 0, true};
  with_room_[size_class] = s;
}

void thread_arena::do_deallocate(void* p, std::size_t bytes, std::size_t alignment) {
  if (bytes > small_bytes_max || alignment > quantum) [[unlikely]] {
    return deallocate_other(p, bytes, alignment);
  }
  auto* s = reinterpret_cast<slab*>(reinterpret_cast<std::uint64_t>(p) / page * page);
  free_block* others = s->free;
  s->free = ::new (p) free_block{others};
  if (--s->used == 0 || others == nullptr) [[unlikely]]
    freed_in(s);
}

/// Called when a slab has got its first free block, or when its last used block was freed.
[[gnu::noinline]] void thread_arena::freed_in(slab* s) {
  slab*& head = with_room_[s->size_class];
  if (!s->has_room) {
    s->has_room = true;
    if (head == &no_slab_) {
      s->next = nullptr;
      head = s;
    } else {
      // Inserted behind the first slab, from which most blocks are allocated.
      s->previous = head;
      s->next = head->next;
      if (s->next != nullptr) s->next->previous = s;
      head->next = s;
    }
  }
  // The last slab of a class with room is kept even when it is empty, because programs free and
  // allocate in turns.
  if (s->used == 0 && (head != s || s->next != nullptr)) {
    unlink(s);
    free_slab(s);
  }
}

void thread_arena::unlink(slab* s) {
  slab*& head = with_room_[s->size_class];
  if (head == s) {
    head = s->next != nullptr ? s->next : &no_slab_;
  } else {
    s->previous->next = s->next;
    if (s->next != nullptr) s->next->previous = s->previous;
  }
  s->has_room = false;
}

void thread_arena::free_slab(slab* s) {
  auto* e = reinterpret_cast<extent*>(reinterpret_cast<char*>(s) - std::uint64_t{s->page} * page);
  fill_bits<false>(e->slabs(), s->page, 1);
  free_pages(e, s->page, 1);
}

/// Frees the empty slabs that were kept. Such a slab is the only one of its class with room.
void thread_arena::free_empty_slabs() {
  for (slab* s : with_room_) {
    if (s == &no_slab_ || s->used != 0) continue;
    unlink(s);
    free_slab(s);
  }
}

// Blocks of whole pages, and blocks with more than the usual alignment.

void* thread_arena::allocate_other(std::size_t bytes, std::size_t alignment) {
  if (alignment > alignment_max) throw std::bad_alloc();
  if (alignment > quantum) {
    bytes = aligned_bytes(bytes, alignment);
    if (bytes <= small_bytes_max) return allocate_small(class_of(bytes));
  }
  if (bytes > std::uint64_t{1} << addresses.arenas_shift) throw std::bad_alloc();
  return allocate_pages(pages_of(bytes), false);
}

void thread_arena::deallocate_other(void* p, std::size_t bytes, std::size_t alignment) {
  if (alignment > quantum) {
    bytes = aligned_bytes(bytes, alignment);
    if (bytes <= small_bytes_max) return do_deallocate(p, bytes, quantum);
  }
  extent* e = extent_of(p);
  std::uint64_t first = (reinterpret_cast<std::uint64_t>(p) - e->address()) / page;
  std::uint64_t count = pages_of(bytes);
  SOJOURN_CHECK(bit(e->used(), first) && !bit(e->slabs(), first) && first + count <= e->pages,
                "%p, of %zu bytes, is freed twice, or with a wrong size", p, bytes);
  if (bytes >= cold_run_bytes) madvise(p, count * page, MADV_DONTNEED);
  free_pages(e, first, count);
}

bool thread_arena::is_valid() const {
  std::size_t listed = 0;
  for (unsigned c = 0; c < class_count; ++c) {
    const slab* before = nullptr;
    for (slab* s = with_room_[c]; s != nullptr && s != &no_slab_; before = s, s = s->next) {
      if (s->size_class != c || !s->has_room || (before != nullptr && s->previous != before)) {
        return false;
      }
      ++listed;
    }
  }
  std::size_t with_room = 0;
  for (extent* e = first_; e != nullptr; e = e->next) {
    if (e->next == nullptr && e != last_) return false;
    std::uint64_t free = 0;
    for (std::uint64_t i = 0; i < e->pages; ++i) {
      bool used = bit(e->used(), i);
      free += !used;
      if (!used && (bit(e->slabs(), i) || i < e->lowest_free)) return false;
      if (used && i >= e->touched) return false;
      if (!bit(e->slabs(), i)) continue;
      auto* s = reinterpret_cast<slab*>(e->page_at(i));
      std::size_t blocks = 0;
      for (free_block* b = s->free; b != nullptr; b = b->next) {
        auto offset = reinterpret_cast<std::uint64_t>(b) - reinterpret_cast<std::uint64_t>(s);
        if (offset >= page || (offset - first_block(s->size_class)) % class_bytes[s->size_class]) {
          return false;
        }
        if (++blocks > s->carved) return false;
      }
      if (s->page != i || blocks + s->used != s->carved) return false;
      if (s->has_room != (s->used < class_capacity[s->size_class])) {
        // A full slab stays in the list until the next allocation from it.
        if (!s->has_room || s->used != class_capacity[s->size_class]) return false;
      }
      with_room += s->has_room;
    }
    if (free != e->pages_free) return false;
  }
  return listed == with_room;
}

}  // namespace sojourn::detail
