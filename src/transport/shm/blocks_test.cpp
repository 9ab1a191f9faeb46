// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/blocks.hpp"

#include <gtest/gtest.h>

using namespace sojourn::detail::shm;

namespace {

struct a_rank {
  layout all{1, 1};
  wake_line line{};
  own_blocks blocks{all, line};

  /// Takes blocks for a message of so many bytes. The first one, or -1.
  long_payload take(std::size_t bytes) {
    const int first = blocks.find(bytes);
    const int count = first < 0 ? 0 : blocks.take(first, bytes);
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count), bytes};
  }
};

TEST(blocks, of_a_message_follow_each_other_and_are_no_others) {
  a_rank rank;
  const long_payload first = rank.take(3 * rank.all.block_bytes - 1);
  const long_payload second = rank.take(rank.all.block_bytes);
  EXPECT_EQ(first.block_count, 3u);
  EXPECT_EQ(second.block_count, 1u);
  EXPECT_GE(second.first_block, first.first_block + 3);
  EXPECT_TRUE(first.lies_in_blocks(rank.all));
}

TEST(blocks, of_messages_that_fit_into_caches_are_used_again_at_once) {
  a_rank rank;
  const long_payload first = rank.take(20'000);
  free_blocks(rank.line, first);
  EXPECT_EQ(rank.take(20'000).first_block, first.first_block);
}

TEST(blocks, of_longer_messages_are_used_in_turn) {
  a_rank rank;
  const long_payload first = rank.take(1 << 20);
  free_blocks(rank.line, first);
  const long_payload second = rank.take(1 << 20);
  EXPECT_EQ(second.first_block, first.first_block + first.block_count);
}

TEST(blocks, are_found_while_enough_of_them_follow_each_other) {
  a_rank rank;
  const std::size_t all = layout::blocks * rank.all.block_bytes;
  EXPECT_EQ(rank.blocks.find(all + 1), -1);
  const long_payload half = rank.take(all / 2);
  const long_payload rest = rank.take(all / 2);
  EXPECT_EQ(rank.blocks.find(1), -1);
  free_blocks(rank.line, rest);
  EXPECT_EQ(rank.blocks.find(all / 2 + 1), -1);
  EXPECT_EQ(rank.blocks.find(all / 2), static_cast<int>(rest.first_block));
  free_blocks(rank.line, half);
  EXPECT_EQ(rank.blocks.find(all), 0);
}

}  // namespace
