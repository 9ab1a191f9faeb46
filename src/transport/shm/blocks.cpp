// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/blocks.hpp"

#include <algorithm>

namespace sojourn::detail::shm {

int own_blocks::find_run(int count, int begin, int end) const {
  int run = 0;
  for (int i = begin; i < end; ++i) {
    run = mine_->block_in_use[i].load(std::memory_order_acquire) == 0 ? run + 1 : 0;
    if (run == count) return i - count + 1;
  }
  return -1;
}

/// Long messages that do not fit into the nearest caches take blocks in turn, from 4 MiB or from as
/// much as two such messages need: the lines of the last message are still in its reader's caches,
/// and writing to them at once takes three times as long (1 MiB).
int own_blocks::find(std::size_t bytes) const {
  constexpr std::size_t goes_round_from = 32u << 10;
  constexpr int round_blocks = 16;
  const int count = count_for(bytes);
  const int round_end = std::min(std::max(round_blocks, 2 * count), layout::blocks);
  const int first = bytes < goes_round_from ? -1 : find_run(count, next_, round_end);
  return first >= 0 ? first : find_run(count, 0, layout::blocks);
}

int own_blocks::take(int first, std::size_t bytes) {
  const int count = count_for(bytes);
  for (int i = first; i < first + count; ++i) {
    mine_->block_in_use[i].store(1, std::memory_order_relaxed);
  }
  next_ = first + count;
  return count;
}

void free_blocks(wake_line& owner, const long_payload& lies) {
  const std::uint32_t first = lies.first_block;
  for (std::uint32_t i = 0; i < lies.block_count; ++i) {
    owner.block_in_use[first + i].store(0, std::memory_order_release);
  }
}

}  // namespace sojourn::detail::shm
