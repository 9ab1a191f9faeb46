// SPDX-License-Identifier: Apache-2.0
#include "shared/rank_blocks.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sojourn/shared/memory.hpp"

using namespace sojourn::detail::pages;

namespace {

constexpr std::uint64_t first = 1 << 30;
constexpr std::uint64_t bytes_of_part = 64 << 10;

struct blocks_of_a_rank : testing::Test {
  std::string refusal_of(std::size_t bytes) {
    try {
      blocks.allocate(bytes, 1, protocol_kind::lsw);
    } catch (const sojourn::shared::exhausted& e) {
      return e.what();
    }
    return "";
  }

  rank_blocks blocks{first, bytes_of_part, std::pmr::get_default_resource()};
};

TEST_F(blocks_of_a_rank, lie_in_the_part_of_their_protocol) {
  EXPECT_EQ(blocks.allocate(64, 64, protocol_kind::lmw).at, first);
  EXPECT_EQ(blocks.allocate(64, 64, protocol_kind::lsw).at, first + bytes_of_part);
  EXPECT_EQ(blocks.allocate(64, 64, protocol_kind::seq).at, first + 2 * bytes_of_part);
}

TEST_F(blocks_of_a_rank, are_refused_with_what_is_left_of_that_part) {
  blocks.allocate(16 << 10, 1, protocol_kind::lsw);
  EXPECT_EQ(refusal_of(48 << 10), "");
  const std::string text = refusal_of(4 << 10);
  EXPECT_NE(text.find("4096 bytes of shared memory"), std::string::npos) << text;
  EXPECT_NE(text.find("of the 64 KiB that a rank has for the protocol lsw, 64 are allocated"),
            std::string::npos)
      << text;
  EXPECT_NO_THROW(blocks.allocate(4 << 10, 1, protocol_kind::seq));
}

TEST_F(blocks_of_a_rank, are_told_of_with_their_names_by_address) {
  blocks.note(first + 4096, 10, 0);
  blocks.note(first, 20, 0);
  blocks.name(first, "matrix");
  const std::vector<named_block> told = blocks.told();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].name, "matrix");
  EXPECT_EQ(told[0].bytes, 20u);
  EXPECT_EQ(told[1].at, first + 4096);
  EXPECT_EQ(told[1].name, "");
}

TEST_F(blocks_of_a_rank, lose_their_names_when_their_place_is_allocated_again) {
  blocks.note(first, 20, 0);
  blocks.name(first, "matrix");
  blocks.note(first, 30, 0);
  EXPECT_EQ(blocks.told()[0].name, "");
}

}  // namespace
