// SPDX-License-Identifier: Apache-2.0
#include "rpc/scope_weight.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace sojourn::detail;

TEST(scope_weight, home_can_always_give_some) {
  scope_weight home(true);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(home.is_exhausted());
    EXPECT_EQ(home.take(), scope_weight::minted_at_once);
  }
}

TEST(scope_weight, is_out_until_all_that_was_given_away_is_back) {
  scope_weight home(true);
  EXPECT_FALSE(home.is_out());
  const std::uint64_t given = home.take() + home.take();
  EXPECT_TRUE(home.add(given - 1));
  EXPECT_TRUE(home.is_out());
  EXPECT_TRUE(home.add(1));
  EXPECT_FALSE(home.is_out());
}

TEST(scope_weight, more_than_was_given_away_is_refused) {
  scope_weight home(true);
  const std::uint64_t given = home.take();
  EXPECT_FALSE(home.add(given + 1));
  EXPECT_TRUE(home.is_out());
  EXPECT_TRUE(home.add(given));
}

TEST(scope_weight, is_exhausted_elsewhere_after_some_hundred_messages) {
  scope_weight held(false);
  EXPECT_TRUE(held.is_exhausted());
  held.add(scope_weight::minted_at_once);
  int messages = 0;
  for (; !held.is_exhausted(); ++messages) {
    const std::uint64_t announced = held.available();
    EXPECT_NE(announced, 0U);
    EXPECT_EQ(held.take(), announced);
  }
  EXPECT_GT(messages, 200);
  EXPECT_LT(messages, 300);
  EXPECT_EQ(held.available(), 0U);
  EXPECT_EQ(held.take_all(), 1U);
}

TEST(scope_weight, goes_far_in_a_chain_of_messages) {
  std::uint64_t carried = scope_weight::minted_at_once;
  int ranks = 0;
  for (; carried != 0; ++ranks) {
    scope_weight held(false);
    held.add(carried);
    carried = held.available();
  }
  EXPECT_GT(ranks, 20);
}

/// Computations on several ranks begin others anywhere and end, in any order; messages carry the
/// weight. Home must never believe that the scope is over while one is left, and always in the end.
TEST(scope_weight, tells_home_that_no_computation_is_left_exactly_when_none_is) {
  constexpr std::size_t ranks = 5;
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<scope_weight> parts(ranks, scope_weight(false));
    parts[0] = scope_weight(true);
    std::vector<int> running(ranks, 0);
    struct message {
      std::size_t to;
      std::uint64_t weight;
      bool begins;  // a computation; otherwise it gives weight back
    };
    std::vector<message> on_the_way;
    running[0] = 1;
    int begun = 1;
    const auto left_elsewhere = [&] {
      return std::accumulate(running.begin() + 1, running.end(), 0) != 0 || !on_the_way.empty();
    };
    const auto any_left = [&] { return running[0] != 0 || left_elsewhere(); };
    while (any_left()) {
      const std::size_t rank = random() % ranks;
      if (!on_the_way.empty() && random() % 2 == 0) {
        std::swap(on_the_way[random() % on_the_way.size()], on_the_way.back());
        const message come = on_the_way.back();
        on_the_way.pop_back();
        ASSERT_TRUE(parts[come.to].add(come.weight));
        running[come.to] += come.begins ? 1 : 0;
      } else if (running[rank] != 0 && begun < 300 && random() % 4 != 0) {
        // In the runtime, a rank that has no weight left asks home for it.
        if (parts[rank].is_exhausted()) parts[rank].add(parts[0].take());
        on_the_way.push_back({random() % ranks, parts[rank].take(), true});
        ++begun;
      } else if (running[rank] != 0 && --running[rank] == 0 && rank != 0) {
        on_the_way.push_back({0, parts[rank].take_all(), false});
      }
      if (left_elsewhere()) {
        ASSERT_TRUE(parts[0].is_out());
      }
    }
    EXPECT_FALSE(parts[0].is_out());
  }
}

}  // namespace
