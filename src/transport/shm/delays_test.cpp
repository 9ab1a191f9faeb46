// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/delays.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "sojourn/errors.hpp"

namespace {

using sojourn::detail::shm::delays;

/// How long each of the next `count` messages of each ring is held, when asked about each 100 ns.
std::vector<std::uint64_t> waits(std::uint64_t seed, int rank, std::size_t rings, int count) {
  std::vector<std::byte> memory(delays::memory_bytes(rings));
  delays d(seed, rank, rings, memory.data());
  std::vector<std::uint64_t> all;
  std::uint64_t now = 1'000'000;
  for (int i = 0; i < count; ++i) {
    for (std::size_t ring = 0; ring < rings; ++ring) {
      const std::uint64_t from = now;
      while (d.holds(ring, now)) now += 100;
      d.passed(ring);
      all.push_back(now - from);
    }
  }
  return all;
}

TEST(delays, follow_from_the_seed_and_the_rank) {
  const auto once = waits(7, 1, 6, 100);
  EXPECT_EQ(once, waits(7, 1, 6, 100));
  EXPECT_NE(once, waits(8, 1, 6, 100));
  EXPECT_NE(once, waits(7, 2, 6, 100));
}

TEST(delays, some_messages_wait_and_none_for_long) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::uint64_t held = 0;
    std::uint64_t sum = 0;
    const auto all = waits(seed, 0, 8, 500);
    for (std::uint64_t w : all) {
      held += w != 0;
      sum += w;
      EXPECT_LE(w, 10'100'000u);
    }
    EXPECT_GT(held, 0u);
    EXPECT_LT(held, all.size());
    // Programs of many calls must come to their end.
    EXPECT_LT(sum / all.size(), 40'000u);
  }
}

TEST(delays, the_first_look_decides_and_the_next_message_has_its_own_time) {
  std::vector<std::byte> memory(delays::memory_bytes(1));
  for (std::uint64_t seed = 0;; ++seed) {
    delays d(seed, 0, 1, memory.data());
    if (!d.holds(0, 1000)) continue;
    EXPECT_TRUE(d.holds(0, 1000));
    EXPECT_FALSE(d.holds(0, 20'000'000));  // later than any delay
    EXPECT_FALSE(d.holds(0, 20'000'000));
    break;
  }
}

TEST(delays, what_is_no_seed_is_refused) {
  std::uint64_t seed = 0;
  unsetenv("SOJOURN_DELAY");
  EXPECT_FALSE(delays::seed_from_environment(seed));
  setenv("SOJOURN_DELAY", "18446744073709551615", 1);
  EXPECT_TRUE(delays::seed_from_environment(seed));
  EXPECT_EQ(seed, ~std::uint64_t{0});
  for (const char* text : {"on", "-1", "1ms", "18446744073709551616", " 1"}) {
    setenv("SOJOURN_DELAY", text, 1);
    EXPECT_THROW(delays::seed_from_environment(seed), sojourn::error) << text;
  }
  unsetenv("SOJOURN_DELAY");
}

}  // namespace
