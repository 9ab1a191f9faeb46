// SPDX-License-Identifier: Apache-2.0
#include "fiber/timers.hpp"
#include "fiber/sleep.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "fiber/scheduler.hpp"
#include "sojourn/waiting/sync.hpp"

namespace {

using namespace sojourn::detail;

/// Takes all ready pieces, in order.
std::vector<piece*> take_ready() {
  std::vector<piece*> ready;
  for (piece* p = std::exchange(first_ready, nullptr); p != nullptr; p = p->next_ready) {
    ready.push_back(p);
  }
  return ready;
}

piece* sleeping(std::uint64_t deadline) {
  piece* p = new_piece();
  p->waits = wait_cause::timer;
  set_timer(p, deadline);
  return p;
}

TEST(timers, none_is_never_due) {
  EXPECT_EQ(next_timer_ns, never_ns);
  EXPECT_EQ(wake_due(~std::uint64_t{0} - 1), 0);
  piece* p = new_piece();
  EXPECT_FALSE(cancel_timer(p));
  EXPECT_EQ(timer_of(p), never_ns);
  set_timer(p, never_ns);
  EXPECT_FALSE(cancel_timer(p));
  free_piece(p);
}

TEST(timers, one_is_due_at_its_time) {
  piece* p = sleeping(1000);
  EXPECT_EQ(next_timer_ns, 1000u);
  EXPECT_EQ(timer_of(p), 1000u);
  EXPECT_EQ(wake_due(999), 0);
  EXPECT_EQ(p->waits, wait_cause::timer);
  EXPECT_EQ(wake_due(1000), 1);
  EXPECT_EQ(p->waits, wait_cause::none);
  EXPECT_EQ(p->word, resumed::by_timer);
  EXPECT_EQ(take_ready(), std::vector<piece*>{p});
  EXPECT_EQ(next_timer_ns, never_ns);
  free_piece(p);
}

TEST(timers, an_hour_passes_at_once_by_a_test_clock) {
  using namespace std::chrono_literals;
  test_clock clock(1000);
  const std::uint64_t due = ns_after(1h);
  EXPECT_EQ(due, 1000 + 3'600'000'000'000);
  piece* p = sleeping(due);
  EXPECT_EQ(wake_due(sojourn::now_ns()), 0);
  clock.advance(3'599'999'999'999);
  EXPECT_EQ(wake_due(sojourn::now_ns()), 0);
  clock.advance(1);
  EXPECT_EQ(wake_due(sojourn::now_ns()), 1);
  EXPECT_EQ(take_ready(), std::vector<piece*>{p});
  free_piece(p);
}

TEST(timers, random_operations_are_those_of_a_map) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::minstd_rand random(seed);
    std::map<std::pair<std::uint64_t, int>, piece*> model;  // by time, then in order of setting
    int number = 0;
    std::uint64_t now = 1000;
    for (int step = 0; step < 20'000; ++step) {
      unsigned what = random() % 100;
      if (what < (step < 5000 ? 80u : 45u)) {
        std::uint64_t due = now + random() % 300;
        model[{due, ++number}] = sleeping(due);
      } else if (what < 90 && !model.empty()) {
        auto at = model.lower_bound({now + random() % 300, 0});
        if (at == model.end()) at = model.begin();
        ASSERT_EQ(timer_of(at->second), at->first.first) << "seed " << seed;
        ASSERT_TRUE(cancel_timer(at->second));
        ASSERT_EQ(at->second->waits, wait_cause::none);
        free_piece(at->second);
        model.erase(at);
      } else {
        now += random() % 20;
        wake_due(now);
        for (piece* p : take_ready()) {
          ASSERT_FALSE(model.empty());
          ASSERT_EQ(p, model.begin()->second) << "seed " << seed;
          ASSERT_LE(model.begin()->first.first, now);
          model.erase(model.begin());
          free_piece(p);
        }
      }
      ASSERT_EQ(timers_set(), model.size());
      ASSERT_EQ(next_timer_ns, model.empty() ? never_ns : model.begin()->first.first);
    }
    wake_due(never_ns - 1);
    ASSERT_EQ(take_ready().size(), model.size());
    for (auto& [due, p] : model) free_piece(p);
  }
}

TEST(timers, times_of_the_standard_clock_are_those_of_now_ns) {
  using namespace std::chrono_literals;
  using clock = std::chrono::steady_clock;
  EXPECT_EQ(ns_of(clock::time_point(5s)), 5'000'000'000u);
  EXPECT_EQ(ns_of(clock::time_point(-5s)), 0u);
  EXPECT_EQ(ns_of(clock::time_point::max()), never_ns);
  EXPECT_EQ(ns_of(clock::time_point::min()), 0u);
  // Never early.
  using fine = std::chrono::duration<std::int64_t, std::pico>;
  EXPECT_EQ(ns_of(std::chrono::time_point<clock, fine>(fine(1001))), 2u);
  EXPECT_EQ(ns_after(0s), 0u);
  EXPECT_EQ(ns_after(-1s), 0u);
  EXPECT_EQ(ns_after(std::chrono::hours::max()), never_ns);
  EXPECT_EQ(ns_after(std::chrono::duration<double>(1e300)), never_ns);
  auto before = static_cast<std::uint64_t>(clock::now().time_since_epoch().count());
  std::uint64_t in_a_second = ns_after(1.0s);
  EXPECT_GE(in_a_second, before + 1'000'000'000);
  EXPECT_LE(in_a_second, before + 60'000'000'000);
}

}  // namespace
