// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/delays.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "sojourn/errors.hpp"

namespace {

using sojourn::detail::shm::delay_setting;
using sojourn::detail::shm::delays;

/// The delays of the rings to a rank, with their memory.
struct delayed_rings {
  delayed_rings(const delay_setting& by, int rank, std::size_t rings)
      : memory(delays::memory_bytes(rings)), all(by, rank, rings, memory.data()) {}
  std::vector<std::byte> memory;
  delays all;
};

/// How long each of the next `count` messages of each ring is held.
std::vector<std::uint64_t> waits(std::uint64_t seed, int rank, std::size_t rings, int count) {
  delayed_rings d({.seed = seed}, rank, rings);
  std::vector<std::uint64_t> all;
  std::uint64_t now = 1'000'000;
  for (int i = 0; i < count; ++i) {
    for (std::size_t ring = 0; ring < rings; ++ring) {
      const std::uint64_t due = d.all.due(ring, 0, now);
      all.push_back(due > now ? due - now : 0);
      now += all.back();
      d.all.passed(ring);
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
  for (std::uint64_t seed = 0;; ++seed) {
    delayed_rings d({.seed = seed}, 0, 1);
    const std::uint64_t due = d.all.due(0, 0, 1000);
    if (due == 0) continue;
    EXPECT_EQ(d.all.due(0, 0, 2000), due);
    EXPECT_EQ(d.all.due(0, 0, 20'000'000), due) << "later than any delay";
    break;
  }
}

constexpr std::uint64_t way = 200'000;

TEST(delays, a_way_takes_as_long_as_said_from_when_the_message_was_sent) {
  delayed_rings d({.way_ns = way}, 1, 5);
  for (std::uint64_t sent = 64'000; sent < 65'000; ++sent) {
    // Looked at while it is on its way, and long afterwards.
    for (const std::uint64_t looked_at : {sent, sent + 1000, sent + way, sent + 10 * way}) {
      const std::uint64_t due = d.all.due(0, delays::stamp(sent), looked_at);
      EXPECT_GE(due, sent + way);
      EXPECT_LT(due, sent + way + 64) << "what the times in headers are rounded to";
      d.all.passed(0);
    }
  }
}

// The reader has read the clock, and then lost its core for a while.
TEST(delays, a_message_that_was_sent_since_the_clock_was_read_takes_as_long) {
  delayed_rings d({.way_ns = way}, 1, 5);
  for (const std::uint64_t lost : {64u, 1000u, 5'000'000u, 500'000'000u}) {
    EXPECT_GE(d.all.due(0, delays::stamp(64'000 + lost), 64'000), 64'000 + lost + way);
    d.all.passed(0);
  }
}

TEST(delays, messages_on_their_way_do_not_wait_for_each_other) {
  delayed_rings d({.way_ns = way}, 1, 5);
  for (std::uint64_t sent = 0; sent < 64'000; sent += 640) {
    EXPECT_EQ(d.all.due(1, delays::stamp(sent), way), sent + way);
    d.all.passed(1);
  }
}

TEST(delays, jitter_is_added_and_follows_from_the_seed) {
  const auto added = [](std::uint64_t seed) {
    delayed_rings d({.seed = seed, .way_ns = way, .jitter_ns = 50'000}, 1, 5);
    std::vector<std::uint64_t> all;
    for (int i = 0; i < 200; ++i) {
      all.push_back(d.all.due(0, delays::stamp(6400), 6400) - 6400 - way);
      d.all.passed(0);
    }
    return all;
  };
  const auto seven = added(7);
  EXPECT_EQ(seven, added(7));
  EXPECT_NE(seven, added(8));
  EXPECT_LT(*std::ranges::min_element(seven), 5'000u);
  EXPECT_GT(*std::ranges::max_element(seven), 45'000u);
  EXPECT_LE(*std::ranges::max_element(seven), 50'000u);
}

TEST(delays, what_a_rank_sends_to_itself_has_no_way) {
  delayed_rings d({.way_ns = way, .jitter_ns = 50'000}, 1, 5);
  for (const std::size_t own : {2u, 3u, 4u}) {
    EXPECT_EQ(d.all.due(own, delays::stamp(6400), 6400), 0u);
  }
}

// Times in headers repeat after 274 s. A rank that computes for so long holds messages once more.
TEST(delays, a_message_that_was_left_for_minutes_is_held_for_a_second_more_at_most) {
  delayed_rings d({.way_ns = way}, 1, 5);
  for (std::uint64_t left = 0; left < 600; ++left) {
    const std::uint64_t now = 6400 + left * 1'000'000'000;
    EXPECT_LE(d.all.due(0, delays::stamp(6400), now), now + 1'000'000'000 + way + 64)
        << left << " s";
    d.all.passed(0);
  }
}

std::optional<delay_setting> read(const char* text) {
  setenv("SOJOURN_DELAY", text, 1);
  const auto setting = delay_setting::from_environment();
  unsetenv("SOJOURN_DELAY");
  return setting;
}

TEST(delays, a_seed_asks_for_the_test_mode) {
  unsetenv("SOJOURN_DELAY");
  EXPECT_FALSE(delay_setting::from_environment());
  EXPECT_FALSE(read(""));
  const auto setting = read("18446744073709551615");
  EXPECT_EQ(setting->seed, ~std::uint64_t{0});
  EXPECT_FALSE(setting->way_ns);
}

TEST(delays, a_time_asks_for_a_way_with_jitter_and_seed) {
  EXPECT_EQ(read("200us")->way_ns, way);
  EXPECT_EQ(read("200us")->jitter_ns, 0u);
  EXPECT_EQ(read("1000ms")->way_ns, 1'000'000'000u);
  EXPECT_EQ(read("0us")->way_ns, 0u);
  EXPECT_EQ(read("200us:50us")->jitter_ns, 50'000u);
  const auto all = read("3ms:1ms:7");
  EXPECT_EQ(all->way_ns, 3'000'000u);
  EXPECT_EQ(all->jitter_ns, 1'000'000u);
  EXPECT_EQ(all->seed, 7u);
}

TEST(delays, what_is_neither_is_refused_and_the_sentence_says_what_may_stand_there) {
  for (const char* text : {"on",
                           "-1",
                           "1s",
                           "1.5ms",
                           "18446744073709551616",
                           " 1",
                           "200 us",
                           "us",
                           "200us:",
                           "200us:7",
                           "200us:50us:",
                           "200us:50us:x",
                           "200us:50us:7:8",
                           "1:2us",
                           "1001ms",
                           "200us:2000ms",
                           "-1us",
                           "99999999999999999999us",
                           "200us,50us",
                           "200usec"}) {
    try {
      (void)read(text);
      ADD_FAILURE() << text << " is taken";
    } catch (const sojourn::error& refused) {
      const std::string what = refused.what();
      EXPECT_NE(what.find(text), std::string::npos) << what;
      EXPECT_NE(what.find("200us:50us:7"), std::string::npos) << what;
    }
  }
  unsetenv("SOJOURN_DELAY");
}

}  // namespace
