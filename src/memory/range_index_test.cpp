// SPDX-License-Identifier: Apache-2.0
#include "memory/range_index.hpp"

#include <gtest/gtest.h>

namespace {

using sojourn::detail::range_index;

TEST(range_index, finds_whatever_has_a_byte_in_common) {
  range_index<const char> index;
  const char *a = "a", *b = "b";
  index.add(0x1000, 0x1000, a);
  index.add(0x4000, 0x2000, b);

  EXPECT_EQ(index.find_overlapping(0x1000, 0x1000), a);  // the same
  EXPECT_EQ(index.find_overlapping(0x1800, 0x10), a);    // inside
  EXPECT_EQ(index.find_overlapping(0x0, 0x1001), a);     // its first byte
  EXPECT_EQ(index.find_overlapping(0x1fff, 1), a);       // its last
  EXPECT_EQ(index.find_overlapping(0x3000, 0x8000), b);  // around it
  EXPECT_EQ(index.find_overlapping(0x5fff, 0x1000), b);

  EXPECT_EQ(index.find_overlapping(0x0, 0x1000), nullptr);
  EXPECT_EQ(index.find_overlapping(0x2000, 0x2000), nullptr);
  EXPECT_EQ(index.find_overlapping(0x6000, 0x1000), nullptr);
}

TEST(range_index, what_was_removed_is_not_found) {
  range_index<const char> index;
  const char* a = "a";
  EXPECT_TRUE(index.empty());
  index.add(0x1000, 0x1000, a);
  EXPECT_FALSE(index.empty());
  index.remove(0x1000);
  index.remove(0x3000);  // was never there
  EXPECT_TRUE(index.empty());
  EXPECT_EQ(index.find_overlapping(0, 0x10000), nullptr);
}

}  // namespace
