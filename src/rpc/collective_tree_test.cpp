// SPDX-License-Identifier: Apache-2.0
#include "rpc/collective_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace {

using namespace sojourn::detail;

// With 1 to 17 places the tree gets its second level; with 257 its third.
constexpr int whole_trees[] = {1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,  12,  13,  14,
                               15, 16, 17, 18, 31, 32, 33, 255, 256, 257, 258, 300, 1000};

std::vector<int> children_of(int place, int count) {
  std::vector<int> all;
  children_in_tree children;
  for (int child; (child = children.now(place, count)) != no_rank; children.next()) {
    all.push_back(child);
  }
  return all;
}

/// All places of the subtree of `place`, as values are combined: its own first.
std::vector<int> subtree(int place, int count) {
  std::vector<int> all{place};
  for (const int child : children_of(place, count)) {
    for (const int below : subtree(child, count)) all.push_back(below);
  }
  return all;
}

TEST(collective_tree, each_place_but_the_top_is_a_child_of_its_parent_alone) {
  for (const int count : whole_trees) {
    SCOPED_TRACE(count);
    std::vector<int> parents(static_cast<std::size_t>(count), no_rank);
    for (int place = 0; place < count; ++place) {
      for (const int child : children_of(place, count)) {
        int& parent = parents.at(static_cast<std::size_t>(child));
        EXPECT_EQ(parent, no_rank) << child;
        parent = place;
      }
    }
    EXPECT_EQ(parents[0], no_rank);
    for (int place = 1; place < count; ++place) {
      EXPECT_EQ(parents[static_cast<std::size_t>(place)], parent_in_tree(place)) << place;
    }
  }
}

TEST(collective_tree, values_are_combined_in_the_order_of_the_members) {
  for (const int count : whole_trees) {
    SCOPED_TRACE(count);
    std::vector<int> in_order(static_cast<std::size_t>(count));
    for (int place = 0; place < count; ++place) in_order[static_cast<std::size_t>(place)] = place;
    EXPECT_EQ(subtree(0, count), in_order);
  }
}

TEST(collective_tree, a_place_has_at_most_fifteen_children_of_each_level) {
  EXPECT_EQ(children_of(0, 17),
            (std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(children_of(16, 20), (std::vector{17, 18, 19}));
  EXPECT_TRUE(children_of(15, 1000).empty());
  EXPECT_EQ(children_of(0, 1000).size(), 15U + 15U + 3U);
}

TEST(collective_tree, a_number_less_than_one_round_away_comes_around) {
  for (int count = 1; count <= 17; ++count) {
    for (int n = -count; n < 2 * count; ++n) EXPECT_EQ(around(n, count), (n + count) % count);
  }
}

TEST(collective_tree, nobody_leaves_a_meeting_before_all_have_come) {
  for (int count = 1; count <= 17; ++count) {
    SCOPED_TRACE(count);
    const auto ranks = static_cast<std::size_t>(count);
    // By rank: the ranks of which it knows that they have come.
    std::vector<std::set<int>> knows(ranks);
    for (int me = 0; me < count; ++me) knows[static_cast<std::size_t>(me)].insert(me);
    int steps = 0;
    for (meeting m; !m.is_over(count); m.next(), ++steps) {
      const std::vector<std::set<int>> before = knows;
      for (int me = 0; me < count; ++me) {
        const int from = m.awaited(me, count);
        EXPECT_EQ(m.told(from, count), me) << "whoever is waited for tells";
        const std::set<int>& told = before[static_cast<std::size_t>(from)];
        knows[static_cast<std::size_t>(me)].insert(told.begin(), told.end());
      }
      EXPECT_TRUE(std::any_of(before.begin(), before.end(), [&](const auto& of) {
        return of.size() < ranks;
      })) << "a step more than is needed";
    }
    for (const std::set<int>& of : knows) EXPECT_EQ(of.size(), ranks);
  }
}

}  // namespace
