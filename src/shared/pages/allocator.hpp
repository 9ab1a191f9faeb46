// SPDX-License-Identifier: Apache-2.0
// Deals out a range of addresses: the smallest free block that is long enough, or new addresses
// when there is none. Free neighbours are joined into one block. What the allocator knows of blocks
// lies elsewhere, so that it never touches the memory that it deals out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/saved_file.hpp"

namespace sojourn::detail::pages {

class allocator {
 public:
  allocator(std::uint64_t first, std::uint64_t bytes, std::pmr::memory_resource* memory);

  struct block {
    std::uint64_t at;  ///< 0: there is no room.
    bool used_before;  ///< The memory may hold what an earlier owner has left there.
  };
  /// Blocks of a page and more begin on a page and have it for themselves; smaller ones begin on a
  /// line of 64 bytes. `align` is a power of two. Requires: `bytes` is not 0. Takes a time that
  /// grows with the logarithm of the number of free blocks.
  block allocate(std::uint64_t bytes, std::uint64_t align);
  /// The length of the block that begins at `at`; 0 when none begins there.
  std::uint64_t bytes_of(std::uint64_t at) const;
  /// False when no block begins there. As fast as allocate.
  bool free(std::uint64_t at);
  std::uint64_t allocated_bytes() const { return allocated_; }
  std::uint64_t capacity() const { return end_ - first_; }
  /// The longest block that could be allocated without an alignment of its own.
  std::uint64_t longest_free() const;
  /// For checkpoints. load() requires that nothing has been allocated.
  void save(file_writer& to) const;
  void load(file_reader& from);
  /// The pages that hold a block or a part of one, as ranges of page numbers in ascending order:
  /// first and end.
  using ranges = std::pmr::vector<std::pair<std::uint64_t, std::uint64_t>>;
  ranges pages_in_use() const;
  /// Whether an address lies behind everything that was ever dealt out.
  bool is_untouched(std::uint64_t at) const { return at >= fresh_ && at < end_; }

 private:
  using free_blocks = std::pmr::map<std::uint64_t, std::uint64_t>;
  using by_length = std::pmr::set<std::pair<std::uint64_t, std::uint64_t>>;

  block deal_out(std::uint64_t begin, std::uint64_t at, std::uint64_t bytes, std::uint64_t end,
                 bool used_before);
  void give_back(std::uint64_t at, std::uint64_t bytes);
  void add_free(std::uint64_t at, std::uint64_t bytes);
  free_blocks::iterator remove_free(free_blocks::iterator hole);

  const std::uint64_t first_;
  const std::uint64_t end_;
  std::uint64_t fresh_;  ///< Nothing was dealt out yet from here on.
  std::uint64_t allocated_ = 0;
  free_blocks free_;  ///< Begin and length of each free block below fresh_.
  /// The same blocks in the order of their lengths, in bytes and in whole pages: the length, and
  /// where the block begins.
  by_length by_bytes_;
  by_length by_pages_;  ///< Without blocks that hold no whole page.
  std::pmr::unordered_map<std::uint64_t, std::uint64_t> sizes_;
};

}  // namespace sojourn::detail::pages
