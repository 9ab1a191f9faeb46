// SPDX-License-Identifier: Apache-2.0
// Deals out a range of addresses. What it knows of them lies elsewhere, so that the memory dealt
// out is never touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <unordered_map>

namespace sojourn::detail::pages {

class allocator {
 public:
  allocator(std::uint64_t first, std::uint64_t bytes, std::pmr::memory_resource* memory);

  struct block {
    std::uint64_t at;  ///< 0: there is no room.
    bool used_before;  ///< It may hold what an earlier owner has left there.
  };
  /// Blocks of a page and more begin on a page and have it for themselves; smaller ones begin on a
  /// line of 64 bytes. `align` is a power of two. Requires: `bytes` is not 0.
  block allocate(std::uint64_t bytes, std::uint64_t align);
  /// False when no block begins there.
  bool free(std::uint64_t at);
  std::uint64_t allocated_bytes() const { return allocated_; }
  std::uint64_t capacity() const { return end_ - first_; }
  /// Whether an address lies behind everything that was ever dealt out.
  bool is_untouched(std::uint64_t at) const { return at >= fresh_ && at < end_; }

 private:
  void give_back(std::uint64_t at, std::uint64_t bytes);

  const std::uint64_t first_;
  const std::uint64_t end_;
  std::uint64_t fresh_;  ///< From here on nothing was dealt out yet.
  std::uint64_t allocated_ = 0;
  std::pmr::map<std::uint64_t, std::uint64_t> free_;  ///< Bytes of each free block, joined.
  std::pmr::unordered_map<std::uint64_t, std::uint64_t> sizes_;
};

}  // namespace sojourn::detail::pages
