// SPDX-License-Identifier: Apache-2.0
// The blocks that a rank has for messages too long for a ring. A long message lies in some that
// follow each other; the ring holds where. The rank takes its own blocks, and whoever has read the
// message gives them back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/shm/layout.hpp"

namespace sojourn::detail::shm {

/// What the ring holds of a long message: where its payload lies.
struct long_payload {
  std::uint32_t first_block;
  std::uint32_t block_count;
  std::uint64_t bytes;

  bool lies_in_blocks(const layout& all) const {
    constexpr std::uint32_t there_are = layout::blocks;
    return first_block < there_are && block_count <= there_are - first_block &&
           bytes <= std::uint64_t{block_count} * all.block_bytes;
  }
};

/// The blocks of this rank.
class own_blocks {
 public:
  /// `mine` says which are in use.
  own_blocks(const layout& all, wake_line& mine) : block_bytes_(all.block_bytes), mine_(&mine) {}

  /// The first of the blocks that a message of `bytes` may lie in; -1 where too few are free.
  int find(std::size_t bytes) const;
  /// Takes blocks for so many bytes, from one that find() has returned for as many. Returns how
  /// many blocks these are.
  int take(int first, std::size_t bytes);

 private:
  int count_for(std::size_t bytes) const {
    return static_cast<int>((bytes + block_bytes_ - 1) / block_bytes_);
  }
  int find_run(int count, int begin, int end) const;

  std::size_t block_bytes_;
  wake_line* mine_;
  int next_ = 0;  ///< Where the next long message looks first.
};

/// The message whose payload lies there, in blocks of the rank whose line this is, has been read.
void free_blocks(wake_line& owner, const long_payload& lies);

}  // namespace sojourn::detail::shm
