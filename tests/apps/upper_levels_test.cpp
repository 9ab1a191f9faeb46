// SPDX-License-Identifier: Apache-2.0
// What ranks keep of the upper levels of a B-link tree.
#include "btree/upper_levels.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace apps {
namespace {

using levels = upper_levels<std::uint64_t, std::uint64_t>;
using page_of_tree = child<std::uint64_t, std::uint64_t>;

/// A page that is only named.
page_of_tree named(std::uint64_t number) {
  using leaf = leaf_page<std::uint64_t, std::uint64_t>;
  return sojourn::reinterpret_pointer_cast<leaf>(sojourn::global_ptr<leaf>() +
                                                 static_cast<std::ptrdiff_t>(number));
}

TEST(upper_levels, say_nothing_of_a_tree_without_branches) {
  EXPECT_FALSE(levels(2).start(7, 0).page);
  EXPECT_FALSE(levels(0).start(7, 0).page);
}

TEST(upper_levels, find_the_last_page_that_is_not_above_the_key) {
  levels all(1);
  all.enter(0, 0, named(1));
  all.enter(0, 50, named(3));
  all.enter(0, 20, named(2));
  EXPECT_EQ(all.start(0, 0).page, named(1));
  EXPECT_EQ(all.start(19, 0).page, named(1));
  EXPECT_EQ(all.start(20, 0).page, named(2));
  EXPECT_EQ(all.start(99, 0).page, named(3));
  EXPECT_EQ(all.start(99, 0).level, 0);
  EXPECT_FALSE(all.start(99, 1).page) << "only the leaves are known";
}

TEST(upper_levels, keep_the_highest_as_the_tree_grows) {
  levels all(2);
  all.enter(0, 0, named(1));
  all.enter(0, 50, named(2));
  all.enter(1, 0, named(10));
  EXPECT_EQ(all.start(60, 0).page, named(2));
  EXPECT_EQ(all.start(60, 1).page, named(10));
  all.enter(2, 0, named(20));
  EXPECT_FALSE(all.keeps(0));
  EXPECT_EQ(all.start(60, 0).page, named(10)) << "from there it is the way down";
  all.enter(0, 70, named(3));
  EXPECT_EQ(all.start(80, 0).page, named(10));
}

TEST(upper_levels, fall_back_where_a_level_has_no_page_yet) {
  levels all(2);
  all.enter(0, 0, named(1));
  all.enter(1, 50, named(11));  // told before the first page of its level
  EXPECT_EQ(all.start(40, 0).page, named(1));
  EXPECT_FALSE(all.start(40, 1).page);
  EXPECT_EQ(all.start(60, 1).page, named(11));
  all.enter(1, 0, named(10));
  EXPECT_EQ(all.start(40, 1).page, named(10));
}

}  // namespace
}  // namespace apps
