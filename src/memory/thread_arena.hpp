// SPDX-License-Identifier: Apache-2.0
// The heap of one thread, which travels with it: blocks at addresses that are unique in the job, in
// extents that the thread took on the ranks where it was. The arena object and all its records lie
// in these extents, too: once their bytes are copied to the same addresses on another rank, the
// arena is there, and pointers to it and into it stay valid. The arena knows nothing of fibers and
// messages: whoever moves a thread copies what `list` names.
//
//   extent:  header | the arena (in the first one) | maps of its pages | pages …
//   page:    free, part of a run of pages, or a slab of equal small blocks with its header in front
//
// No locks and no atomics: a rank has one system thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "memory/arena_extents.hpp"

namespace sojourn::detail {

namespace arena {
struct extent;
}

struct page_range {
  std::uint64_t address;
  std::uint64_t bytes;
};

/// An extent of an arena; only its first `touched` bytes may be backed with memory.
struct extent_use {
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t touched;
};

/// Describes an arena to the next rank, together with a table of `entries()` ranges: first each
/// extent as a whole, then the ranges in use, in the same order. May travel as bytes.
struct arena_descriptor {
  std::uint64_t arena;    ///< Its address, on every rank.
  std::uint64_t bytes;    ///< In use, in all ranges together: what has to be copied.
  std::uint32_t extents;  ///< How many; the first is where the arena lies.
  std::uint32_t ranges;   ///< How many ranges are in use.

  std::size_t entries() const { return std::size_t{extents} + ranges; }
};

class thread_arena final : public std::pmr::memory_resource {
 public:
  static constexpr std::size_t page_bytes = 4096;
  /// Blocks above this many bytes are runs of whole pages.
  static constexpr std::size_t small_bytes_max = 2032;
  static constexpr std::size_t alignment_max = page_bytes;
  static constexpr std::uint64_t first_extent_bytes = arena_extents::granule_bytes;
  /// A new extent is twice as long as the last one, up to this; a larger block gets one of its own
  /// length.
  static constexpr std::uint64_t grown_extent_bytes = 16u << 20;

  /// A new arena, of one extent of this rank's partition. Throws std::bad_alloc.
  static thread_arena* make();
  /// Ends an arena that is on this rank, whatever lives in it; no destructor is called. Its extents
  /// of this rank's partition become free. Returns those of other ranks by address, so that those
  /// of one rank stand together: each is to be given back on its own rank, by
  /// `extents.give_back(address, bytes)`. Throws std::bad_alloc, before anything has changed.
  static std::vector<page_range> end(thread_arena* arena);

  /// Describes what would have to be sent now. Any use of the arena makes the description stale.
  arena_descriptor describe();
  /// Writes the table that goes with `describe()`: `entries()` ranges.
  void list(page_range* table) const;
  /// Bytes that travel: live blocks, the free space between them, and the arena's own records.
  std::size_t used_pages_bytes() { return describe().bytes; }

  /// The argument for `leave`, to be asked for before the thread goes: afterwards the arena's own
  /// records may not be read any more.
  std::vector<extent_use> extents_in_use() const;
  /// To be called when the thread has gone and its bytes were copied out: the arena no longer
  /// exists on this rank, which may use the memory otherwise. Reads nothing of the arena.
  static void leave(const std::vector<extent_use>& extents);
  /// Backs an arena that arrives with memory. The caller then copies the bytes of the ranges in use
  /// to their addresses, and has the arena at the returned address. Ends the rank when the table is
  /// damaged. Throws std::bad_alloc.
  static thread_arena* arrive(const arena_descriptor& descriptor, const page_range* table);

  /// Writes the arena to a file; `load` restores one that was written in an earlier run.
  void save(file_writer& to);
  static thread_arena* load(file_reader& from);

  /// Checks all records; for tests.
  bool is_valid() const;

 private:
  static constexpr unsigned class_count = 22;

  using extent = arena::extent;
  struct free_block {
    free_block* next;
  };
  /// The header of a slab, at the beginning of its page.
  struct slab {
    free_block* free;    // free blocks: freed, or carved and not used yet
    slab* next;          // next slab of this class with room
    slab* previous;      // undefined in the first slab of the list
    std::uint32_t page;  // its page's index in the extent
    std::uint8_t size_class;
    std::uint8_t carved;  // how many blocks were ever in `free`; nothing was written behind them
    std::uint8_t used;    // how many blocks are allocated
    bool has_room;        // it is in the list of its class
  };

  explicit thread_arena(extent* first);
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  void* allocate_small(unsigned size_class);
  void* allocate_other(std::size_t bytes, std::size_t alignment);
  void deallocate_other(void* p, std::size_t bytes, std::size_t alignment);
  void* refill(unsigned size_class);
  void add_slab(unsigned size_class);
  void freed_in(slab* s);
  void unlink(slab* s);
  void free_slab(slab* s);
  void free_empty_slabs();
  char* allocate_pages(std::uint64_t count, bool for_slab);
  void free_pages(extent* e, std::uint64_t first, std::uint64_t count);
  extent* grow(std::uint64_t pages);
  void shrink(extent* e);
  extent* extent_of(const void* p) const;
  template <class F>
  void for_each_used_range(F f) const;

  slab* with_room_[class_count];  // `no_slab_` when no slab of the class has room
  slab no_slab_;  // counts as full; a member, so that its address is valid on every rank
  extent* first_;
  extent* last_;
  std::uint64_t next_extent_bytes_;
};

}  // namespace sojourn::detail
