// SPDX-License-Identifier: Apache-2.0
#include "fiber/wait_clock.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sojourn::detail {
namespace {

TEST(wait_clock, those_that_begin_in_one_round_share_its_end) {
  wait_clock clock;
  std::vector<piece> waiting(3);
  for (piece& p : waiting) clock.begins(&p);
  const std::uint64_t before = ticks();
  clock.end_round();
  EXPECT_GE(waiting[0].since, before);
  for (const piece& p : waiting) EXPECT_EQ(p.since, waiting[0].since);
}

TEST(wait_clock, a_round_may_have_any_number) {
  wait_clock clock;
  std::vector<piece> waiting(1000);
  const std::uint64_t before = ticks();
  for (piece& p : waiting) clock.begins(&p);
  clock.end_round();
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    EXPECT_GE(waiting[i].since, i == 0 ? before : waiting[i - 1].since);
  }
}

TEST(wait_clock, in_the_first_round_one_waits_since_the_clock_was_made) {
  const std::uint64_t before = ticks();
  wait_clock clock;
  piece p;
  clock.begins(&p);
  EXPECT_GT(p.since, before);
  EXPECT_LE(p.since, ticks() + 1);
}

TEST(wait_clock, until_its_round_ends_one_waits_since_the_last) {
  wait_clock clock;
  piece first;
  clock.begins(&first);
  clock.end_round();
  piece second;
  clock.begins(&second);
  EXPECT_EQ(second.since, first.since + 1);
  const std::uint64_t before = ticks();
  clock.end_round();
  EXPECT_GE(second.since, before);
}

}  // namespace
}  // namespace sojourn::detail
