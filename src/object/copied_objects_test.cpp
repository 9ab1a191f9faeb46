// SPDX-License-Identifier: Apache-2.0
#include "object/copied_objects.hpp"

#include <gtest/gtest.h>

using sojourn::detail::copied_objects;

namespace {

std::size_t touched(copied_objects& all, std::uint64_t address, std::size_t bytes) {
  return all.overlapping(address, bytes).size();
}

TEST(copied_objects, a_range_touches_the_objects_with_which_it_shares_a_byte) {
  copied_objects all;
  all.add(1000, {40});
  all.add(1040, {8});
  EXPECT_EQ(touched(all, 1000, 40), 1u);
  EXPECT_EQ(touched(all, 1039, 1), 1u);
  EXPECT_EQ(touched(all, 1039, 2), 2u);
  EXPECT_EQ(touched(all, 0, 1000), 0u);
  EXPECT_EQ(touched(all, 0, 1001), 1u);
  EXPECT_EQ(touched(all, 1048, 100), 0u);
  EXPECT_EQ(touched(all, 900, 1000), 2u);
}

TEST(copied_objects, one_that_was_removed_is_not_touched) {
  copied_objects all;
  all.add(1000, {40});
  all.remove(1000);
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(all.find(1000), nullptr);
  EXPECT_EQ(touched(all, 1000, 40), 0u);
}

}  // namespace
