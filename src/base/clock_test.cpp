// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "sojourn/detail/times.hpp"

namespace {

using namespace sojourn::detail;
using namespace std::chrono_literals;
using sojourn::now_ns;

constexpr std::uint64_t hour_ns = 3'600'000'000'000;

TEST(clock, a_test_clock_stands_still_until_it_is_advanced) {
  const std::uint64_t before = now_ns();
  {
    test_clock clock(7);
    EXPECT_EQ(now_ns(), 7u);
    clock.advance(5);
    EXPECT_EQ(now_ns(), 12u);
    EXPECT_EQ(ns_after(1h), 12 + hour_ns);
  }
  EXPECT_GE(now_ns(), before);
  EXPECT_LT(now_ns(), before + hour_ns) << "the system's clock is back";
}

TEST(clock, a_sleep_by_a_test_clock_ends_at_once_and_sets_it) {
  test_clock clock(0);
  std::atomic<std::uint32_t> word = 1;
  EXPECT_TRUE(sleep_on(word, 1, hour_ns));
  EXPECT_EQ(now_ns(), hour_ns);
  EXPECT_TRUE(sleep_on(word, 1, 5)) << "a time that is past";
  EXPECT_EQ(now_ns(), hour_ns) << "the clock never goes back";
  EXPECT_FALSE(sleep_on(word, 0, 2 * hour_ns)) << "the word has changed";
  EXPECT_EQ(now_ns(), hour_ns);
}

TEST(clock, a_sleep_ends_when_its_word_has_changed_or_its_time_has_come) {
  std::atomic<std::uint32_t> word = 1;
  EXPECT_FALSE(sleep_on(word, 0, never_ns));
  EXPECT_FALSE(sleep_on(word, 0, now_ns() + hour_ns));
  const std::uint64_t deadline = now_ns() + 1'000'000;
  while (!sleep_on(word, 1, deadline)) {
  }
  EXPECT_GE(now_ns(), deadline);
}

TEST(clock, ticks_count_the_same_time_as_the_system) {
  const tick_clock clock;
  // If the test is stopped for long between the two readings, one clock sees more time than the
  // other. So the closest of several tries counts.
  double closest = 1;
  for (int i = 0; i < 20 && closest > 0.01; ++i) {
    const std::uint64_t begin = clock.ns();
    const std::uint64_t begin_ns = now_ns();
    while (now_ns() < begin_ns + 1'000'000) {
    }
    const auto passed = static_cast<double>(now_ns() - begin_ns);
    const auto ticked = static_cast<double>(clock.since(begin));
    closest = std::min(closest, std::abs(ticked - passed) / passed);
  }
  EXPECT_LE(closest, 0.01);
  EXPECT_EQ(clock.since(clock.ns() + hour_ns), 0u) << "another core's clock is ahead";
}

}  // namespace
