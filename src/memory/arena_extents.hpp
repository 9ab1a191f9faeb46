// SPDX-License-Identifier: Apache-2.0
// Extents: ranges of the arenas region, of which the heaps of threads are made. Each rank hands out
// those of its own partition, and backs any that a thread brings along with private memory. The
// extents do not know what lies in them.
//
// When a thread leaves, the content of its memory is worthless, but the memory itself saves the
// next thread at these addresses the page faults. So it stays *warm* until there is too much of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/address_map.hpp"

namespace sojourn::detail {

class file_writer;
class file_reader;

class arena_extents {
 public:
  static constexpr unsigned granule_shift = 16;
  static constexpr std::uint64_t granule_bytes = std::uint64_t{1} << granule_shift;

  /// Hands out an extent of this rank's partition: `bytes`, rounded up to whole granules, backed
  /// with memory whose content is undefined. Returns 0 when no free range is long enough. Requires:
  /// the region is mapped. Throws std::bad_alloc when the system gives no memory.
  std::uint64_t take(std::uint64_t bytes);
  /// Takes back an extent, or a part of one. Requires: it is of this rank's partition, and retired
  /// on every rank where it was in use.
  void give_back(std::uint64_t address, std::uint64_t bytes);

  /// Backs an extent of any rank with memory, for a thread that brings it. Throws std::bad_alloc.
  void open(std::uint64_t address, std::uint64_t bytes);
  /// The extent's content is no longer needed on this rank; at most its first `touched` bytes are
  /// backed with memory. In checked mode it becomes inaccessible until it is opened again.
  void retire(std::uint64_t address, std::uint64_t bytes, std::uint64_t touched);

  /// Saves which ranges of this rank's partition are handed out; `load` marks the same ones in a
  /// fresh job. Their content is saved with the arenas.
  void save(file_writer& to) const;
  void load(file_reader& from);

  /// Whether the address is of this rank's partition.
  bool is_home(std::uint64_t address) const {
    return (address - addresses.arenas) >> addresses.arenas_shift == rank_;
  }
  /// Bytes of this rank's partition that are handed out now, wherever they are in use.
  std::uint64_t bytes_taken() const { return bytes_taken_; }
  /// Upper bound of the bytes that retired extents hold on this rank.
  std::uint64_t bytes_warm() const { return warm_bytes_; }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr unsigned orders_max = 32;
  static constexpr std::uint32_t warm_ranges_max = 512;

  /// A free block of 2^order granules: the entry of its first granule.
  struct block {
    std::uint32_t next;
    std::uint32_t previous;
    std::uint8_t order_plus_one;  // 0: no free block begins here
  };
  struct granule_range {
    std::uint32_t first;
    std::uint32_t count;
    std::uint64_t bytes;
  };

  void attach();
  void link(std::uint32_t first, unsigned order);
  void unlink(std::uint32_t first);
  std::uint32_t take_range(std::uint32_t count);
  void free_range(std::uint32_t first, std::uint32_t count);
  void keep_warm(std::uint32_t first, std::uint32_t count, std::uint64_t bytes);
  void cool();

  std::uint8_t* granules_ = nullptr;  // the state on this rank of each granule of the job
  std::uint8_t* chunks_ = nullptr;    // for each chunk of the job: 1 when made accessible
  block* blocks_ = nullptr;           // one for each granule of this rank's partition
  std::uint32_t heads_[orders_max];   // free blocks of each order
  std::uint64_t rank_ = 0;
  unsigned top_order_ = 0;
  std::uint64_t bytes_taken_ = 0;
  granule_range warm_[warm_ranges_max];  // the oldest first
  std::uint32_t warm_count_ = 0;
  std::uint64_t warm_bytes_ = 0;
};

extern arena_extents extents;

}  // namespace sojourn::detail
