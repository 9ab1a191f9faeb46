// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/yielding.hpp"

#include <gtest/gtest.h>

namespace {

using sojourn::detail::shm::yielding;

constexpr std::uint64_t quick = 1000;
constexpr std::uint64_t slow = yielding::long_ns;

unsigned waits_without_yields(yielding& y) {
  unsigned waits = 0;
  while (!y.begin_wait()) ++waits;
  return waits;
}

TEST(yielding, goes_on_while_yields_are_quick) {
  yielding y;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(y.begin_wait());
    EXPECT_TRUE(y.yielded(quick));
  }
}

TEST(yielding, is_left_out_for_longer_and_longer_while_something_else_computes) {
  yielding y;
  for (unsigned pause = yielding::first_pause; pause <= yielding::longest_pause; pause *= 2) {
    EXPECT_EQ(waits_without_yields(y), pause == yielding::first_pause ? 0 : pause / 2);
    EXPECT_FALSE(y.yielded(slow));
  }
  EXPECT_EQ(waits_without_yields(y), yielding::longest_pause);
  EXPECT_FALSE(y.yielded(slow));
  EXPECT_EQ(waits_without_yields(y), yielding::longest_pause);
}

TEST(yielding, begins_again_when_the_core_has_long_been_free) {
  yielding y;
  EXPECT_FALSE(y.yielded(slow));
  EXPECT_FALSE(y.yielded(slow));
  (void)waits_without_yields(y);
  for (unsigned i = 0; i < yielding::quick_until_forgotten; ++i) EXPECT_TRUE(y.yielded(quick));
  EXPECT_FALSE(y.yielded(slow));
  EXPECT_EQ(waits_without_yields(y), yielding::first_pause);
}

}  // namespace
