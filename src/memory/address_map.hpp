// SPDX-License-Identifier: Apache-2.0
// Where things lie: one range of addresses, the same in every rank, divided by arithmetic. Knows
// nothing of fibers, objects or messages.
//
//   base        private    the worker thread's stack, at the same address in every rank, and the
//                          runtime's own tables; in the last quarter the memory that main() and
//                          its processes have from malloc() (programs of `sojourn cc`)
//   + 1 unit    stacks     a partition of slots for each rank; each rank backs all of them, its own
//                          and the others', with private memory
//   + 2 units   heap       a partition for each rank; shared by the ranks of a host, or private
//   + 6 units   arenas     a partition for each rank, for the heaps that travel with threads; each
//                          rank backs all of them with private memory
//   + 7 units   shared     software shared memory, mapped twice: the lower half is the view that
//                          the program has of a rank's copies, the upper half the runtime's view
//                          of the same memory
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

namespace sojourn::detail {

struct address_map {
  static constexpr std::uint64_t default_base = 0x2000'0000'0000;
  static constexpr std::uint64_t default_bytes = 10ull << 40;
  static constexpr std::size_t default_main_stack_bytes = 8u << 20;
  static constexpr std::size_t worker_stack_bytes = 8u << 20;
  /// How many fibers of a rank, at most, keep stacks of their own.
  static constexpr std::size_t fibers_most = 1024;
  /// Slots beside those of fibers: for the next handler, and for the fiber that it may become.
  static constexpr std::size_t slots_spare = 4;
  /// Wider than any likely frame. Code that is compiled without stack clash protection, such as
  /// that of most libraries, touches only the far end of a large array, and would step over a guard
  /// of one page. The guard takes addresses, not memory.
  static constexpr std::size_t wide_guard_bytes = 1u << 20;

  std::uint64_t base = default_base;
  std::uint64_t bytes = default_bytes;
  std::uint64_t unit = 0;
  std::uint64_t stacks = 0;   ///< First address of rank 0's stacks.
  std::uint64_t heap = 0;     ///< First address of rank 0's heap.
  std::uint64_t arenas = 0;   ///< First address of rank 0's arenas.
  unsigned stacks_shift = 0;  ///< log2 of the bytes of one rank's stacks.
  unsigned heap_shift = 0;    ///< log2 of the bytes of one rank's heap.
  unsigned arenas_shift = 0;  ///< log2 of the bytes of one rank's arenas.
  unsigned slot_shift = 18;   ///< log2 of the bytes of a stack slot: a wide guard and a stack.
  std::uint64_t stack_bytes = 256u << 10;  ///< Of a fiber's stack, its guard page included.
  std::uint64_t main_stack_bytes = default_main_stack_bytes;
  std::uint64_t shared = 0;  ///< First address of the program's view of shared memory.
  /// Slot i's stack ends (i & stagger_mask) pages below the slot's end. 0 when slots are so narrow
  /// that the guard needs all addresses beside the stack.
  std::uint32_t stagger_mask = 0;

  /// Divides a region among ranks. `stack_bytes` is a power of two, `main_stack_bytes` a multiple
  /// of 64 KiB. Below each stack the guard is at least wide_guard_bytes wide, or as wide as it can
  /// be with fibers_most stacks for each rank. Throws sojourn::error when the region is too small
  /// for the stacks.
  static address_map divide(std::uint64_t base, std::uint64_t bytes, int ranks,
                            std::size_t stack_bytes,
                            std::size_t main_stack_bytes = default_main_stack_bytes);

  std::uint64_t worker_stack() const { return base + (std::uint64_t{1} << 21); }
  /// Memory of C programs: nothing is mapped there until such a program runs.
  std::uint64_t program_heap() const { return stacks - program_heap_bytes(); }
  std::uint64_t program_heap_bytes() const { return unit / 4; }
  std::uint64_t stacks_end() const { return stacks + unit; }
  std::uint64_t heap_bytes() const { return 4 * unit; }
  std::uint64_t arenas_end() const { return arenas + unit; }
  std::uint64_t slot_count() const { return unit >> slot_shift; }
  std::uint64_t slots_per_rank() const { return std::uint64_t{1} << (stacks_shift - slot_shift); }
  std::uint64_t slot_bytes() const { return std::uint64_t{1} << slot_shift; }
  /// How many bytes of a slot lie beside a fiber's stack; they are guarded like the stack's lowest
  /// page.
  std::uint64_t beyond_guard_page() const { return slot_bytes() - stack_bytes; }
  /// How wide the guard below each fiber's stack is at least.
  std::uint64_t guard_width() const {
    return beyond_guard_page() + (std::uint64_t{1} - stagger_mask) * 4096;
  }
  /// How many slots at the beginning of a partition are the main fiber's.
  std::uint64_t main_slots() const {
    return (main_stack_bytes + beyond_guard_page() + slot_bytes() - 1) >> slot_shift;
  }
  /// The bytes of each of the two views of shared memory: as many as a job can share.
  std::uint64_t shared_bytes() const { return unit / 2; }
  bool in_stacks(std::uint64_t address) const { return address - stacks < unit; }
  bool in_arenas(std::uint64_t address) const { return address - arenas < unit; }
  /// True for addresses in the program's view of shared memory; false in the runtime's view.
  bool in_shared(std::uint64_t address) const { return address - shared < shared_bytes(); }
  /// The rank in whose partition an address of the stacks lies.
  int stacks_home(std::uint64_t address) const {
    return static_cast<int>((address - stacks) >> stacks_shift);
  }
  /// The rank in whose partition an address of the arenas lies.
  int arenas_home(std::uint64_t address) const {
    return static_cast<int>((address - arenas) >> arenas_shift);
  }
};

/// The map of this job; set once by map_region.
extern address_map addresses;

/// Reserves the region's addresses, without memory. Returns 0 or an errno; EEXIST when they are
/// taken.
int reserve_region(const address_map& map);

struct obstacle {
  std::string what;
  std::string remedy;
};
/// What kept reserve_region(map) from succeeding, and the remedy; `reason` is the errno that it
/// returned.
obstacle why_not_reserved(const address_map& map, int reason);

/// Ranks of one host, whose numbers follow each other.
struct ranks_of_host {
  int first;
  int count;
};

/// Reserves the region and maps the heap: the partitions of the ranks `near` of `heap_fd`, or, when
/// it is -1, this rank's partition alone. Sets `addresses` and the heap words of `job`. Throws
/// sojourn::error with the reason and the remedy.
void map_region(const address_map& map, int rank, int heap_fd, ranks_of_host near = {0, 1});

/// Zeroed memory for the runtime's own tables, never freed, in the region's private part. Stale
/// copies of addresses of these tables lie on every stack; in the private part they are never taken
/// for pointers into the program's heap by the scan of frames that migrate. Pages are charged when
/// touched. Throws std::bad_alloc.
void* runtime_memory(std::size_t bytes);
/// The same for an array of default-constructed elements.
template <class T>
T* runtime_array(std::size_t count) {
  T* first = static_cast<T*>(runtime_memory(count * sizeof(T)));
  for (std::size_t i = 0; i < count; ++i) ::new (static_cast<void*>(first + i)) T();
  return first;
}
/// Like runtime_memory, but from the other end of the private part: as long as there is room, the
/// n-th such block lies at the same addresses in every run, whatever else was asked for.
void* runtime_memory_at_end(std::size_t bytes);
/// Moves a mapping into the region's private part, if there is room; returns its address.
void* move_mapping_to_runtime_memory(void* mapping, std::size_t bytes);

/// The size of the region under valgrind. Memcheck keeps a record of each 64 KiB that are mapped,
/// and its search for leaks reads all of the heap, which takes memory for what nobody has touched.
constexpr std::uint64_t bytes_under_valgrind(int ranks) {
  const std::uint64_t bytes = std::bit_ceil(static_cast<std::uint64_t>(ranks)) << 28;
  return bytes < std::uint64_t{1} << 30 ? std::uint64_t{1} << 30 : bytes;
}

/// True when valgrind runs this program: valgrind preloads a library of its own, and leaves its
/// name in LD_PRELOAD.
bool under_valgrind();

/// Limits of what a user may set, both for fibers' stacks and for main's.
inline constexpr std::uint64_t stack_kib_min = 64;
inline constexpr std::uint64_t stack_kib_max = 1 << 20;

/// The map that SOJOURN_REGION_GIB, SOJOURN_STACK_KIB and SOJOURN_MAIN_STACK_KIB ask for. Without
/// the first, the region has its default size, or that for valgrind when it `shrinks`. Throws
/// sojourn::error when a value is wrong.
address_map map_from_environment(int ranks, bool shrinks = under_valgrind());

}  // namespace sojourn::detail
