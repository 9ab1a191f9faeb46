// SPDX-License-Identifier: Apache-2.0
// Messages that wait on their ways (SOJOURN_DELAY). At random times, for tests: each order that
// transport.hpp promises is kept, and no other. For a given time: no message is delivered sooner,
// none later than it can be, and as many as the ring holds are on their way.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "sojourn/waiting/clock.hpp"
#include "transports.hpp"

namespace {

using namespace conformance;

constexpr message_class both_classes[] = {message_class::request, message_class::reply};

/// As long as it lives, transports that are made delay messages.
struct delayed {
  explicit delayed(std::uint64_t seed) : delayed(std::to_string(seed)) {}
  explicit delayed(const std::string& setting) { setenv("SOJOURN_DELAY", setting.c_str(), 1); }
  ~delayed() { unsetenv("SOJOURN_DELAY"); }
};

/// Polls until `count` have come; each is looked at once.
std::vector<received> poll_all(transport& at, std::size_t count) {
  std::vector<received> all;
  const std::uint64_t patience = sojourn::now_ns() + 30'000'000'000;
  while (all.size() < count && sojourn::now_ns() < patience) {
    for (received& m : poll(at, 3)) all.push_back(std::move(m));
  }
  EXPECT_EQ(all.size(), count) << "a message is lost, or waits for ever";
  return all;
}

TEST(delayed_transport, each_way_keeps_its_order) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const delayed mode(seed);
    shm_job job(3);
    std::minstd_rand random(static_cast<unsigned>(seed + 1));
    std::map<std::pair<int, message_class>, std::uint64_t> sent, got;
    for (int i = 0; i < 300; ++i) {
      const int from = static_cast<int>(random() % 3);
      const message_class kind = both_classes[random() % 2];
      const std::size_t bytes = random() % 40 == 0 ? 20'000 + random() % 9000 : random() % 300;
      auto& number = sent[{from, kind}];
      ASSERT_TRUE(send(job.at(from), 0, kind, number, bytes));
      ++number;
    }
    for (const received& m : poll_all(job.at(0), 300)) {
      ASSERT_EQ(m.ticket, (got[{m.source, m.kind}]++)) << "seed " << seed;
      ASSERT_TRUE(content_is_right(m));
    }
    EXPECT_EQ(poll(job.at(0)).size(), 0u);
  }
}

TEST(delayed_transport, whatever_has_no_order_comes_in_any) {
  // A request and a reply from each of two ranks: all 24 orders.
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const delayed mode(seed);
    shm_job job(3);
    for (int round = 0; round < 20; ++round) {
      for (int from : {1, 2}) {
        for (message_class kind : both_classes) {
          const auto way = static_cast<std::uint64_t>(from * 2) + static_cast<std::uint64_t>(kind);
          ASSERT_TRUE(send(job.at(from), 0, kind, way, 8));
        }
      }
      std::vector<std::uint64_t> order;
      for (const received& m : poll_all(job.at(0), 4)) order.push_back(m.ticket);
      orders.insert(order);
    }
  }
  EXPECT_EQ(orders.size(), 24u);
}

TEST(delayed_transport, what_is_sent_to_oneself_waits_too) {
  int waited = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const delayed mode(seed);
    shm_job job(2);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(send(job.at(0), 0, message_class::reply, 1, 8));
      if (poll(job.at(0)).empty()) {
        ++waited;
        poll_all(job.at(0), 1);
      }
    }
  }
  EXPECT_GT(waited, 0);
}

TEST(delayed_transport, a_rank_that_waits_gets_what_is_held) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const delayed mode(seed);
    shm_job job(2);
    std::thread sender([&] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        while (!send(job.at(0), 1, both_classes[i % 2], i, 8)) std::this_thread::yield();
        if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
      }
    });
    std::size_t got = 0;
    while (got < 50) {
      job.at(1).wait([] { return false; });
      got += poll(job.at(1)).size();
    }
    sender.join();
    EXPECT_EQ(got, 50u);
  }
}

TEST(delayed_transport, a_wait_ends_at_its_deadline_while_messages_are_held) {
  const delayed mode(1);
  shm_job job(2);
  ASSERT_TRUE(send(job.at(0), 1, message_class::request, 1, 8));
  const std::uint64_t deadline = sojourn::now_ns() + 1000;
  job.at(1).wait([] { return false; }, nullptr, deadline);
  // Something may be delivered, or the time has come.
  if (poll(job.at(1)).empty()) {
    EXPECT_GE(sojourn::now_ns(), deadline);
  }
}

TEST(delayed_transport, without_the_variable_nothing_is_held) {
  shm_job job(2);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(send(job.at(0), 1, both_classes[i % 2], i, 8));
    ASSERT_EQ(poll(job.at(1)).size(), 1u);
  }
}

using sojourn::now_ns;
using sojourn::detail::test_clock;

constexpr std::uint64_t way = 200'000;
constexpr std::uint64_t start = 64'000'000;  // the times in headers are of 64 ns

TEST(transport_with_a_way, delivers_no_sooner_and_no_later) {
  const delayed mode("200us");
  test_clock clock(start);
  shm_job job(3);
  ASSERT_TRUE(send(job.at(0), 1, message_class::request, 1, 8));
  clock.advance(64'000);
  ASSERT_TRUE(send(job.at(2), 1, message_class::reply, 2, 20'000));
  clock.advance(way - 64'001);
  EXPECT_EQ(poll(job.at(1)).size(), 0u);
  clock.advance(1);
  EXPECT_EQ(poll(job.at(1)).size(), 1u);
  clock.advance(63'999);
  EXPECT_EQ(poll(job.at(1)).size(), 0u);
  clock.advance(1);
  const auto last = poll(job.at(1));
  ASSERT_EQ(last.size(), 1u);
  EXPECT_TRUE(content_is_right(last.front()));
}

TEST(transport_with_a_way, wakes_a_rank_that_waits_when_the_message_is_due) {
  const delayed mode("200us");
  test_clock clock(start);
  shm_job job(2);
  for (const message_class kind : both_classes) {
    const std::uint64_t sent = now_ns();
    ASSERT_TRUE(send(job.at(0), 1, kind, 1, 8));
    job.at(1).wait([] { return false; });
    EXPECT_EQ(now_ns(), sent + way);
    EXPECT_EQ(poll(job.at(1)).size(), 1u);
  }
}

TEST(transport_with_a_way, a_wait_ends_at_its_deadline_before_the_message_is_due) {
  const delayed mode("200us");
  test_clock clock(start);
  shm_job job(2);
  ASSERT_TRUE(send(job.at(0), 1, message_class::request, 1, 8));
  job.at(1).wait([] { return false; }, nullptr, start + 1000);
  EXPECT_EQ(now_ns(), start + 1000);
  EXPECT_EQ(poll(job.at(1)).size(), 0u);
}

/// It has not read everything, which others take a sleeping rank for.
TEST(transport_with_a_way, a_rank_that_waits_for_a_message_on_its_way_is_not_said_to_sleep) {
  static int times;
  times = 0;
  const delayed mode("200us");
  test_clock clock(start);
  shm_job job(2);
  const auto counts_sleeps = [](bool) { ++times; };
  ASSERT_TRUE(send(job.at(0), 1, message_class::request, 1, 8));
  job.at(1).wait([] { return false; }, counts_sleeps);
  EXPECT_EQ(times, 0);
  EXPECT_EQ(poll(job.at(1)).size(), 1u);
  job.at(1).wait([] { return false; }, counts_sleeps, now_ns() + 1000);
  EXPECT_EQ(times, 2);
}

TEST(transport_with_a_way, as_many_are_on_their_way_as_there_is_room_for) {
  const delayed mode("200us");
  test_clock clock(start);
  shm_job job(2);
  std::uint64_t sent = 0;
  while (send(job.at(0), 1, message_class::request, sent, 64)) ++sent;
  EXPECT_GT(sent, 1000u);
  clock.advance(way);
  const auto all = poll(job.at(1));
  ASSERT_EQ(all.size(), sent) << "all of them took the time of one";
  for (std::uint64_t i = 0; i < sent; ++i) ASSERT_EQ(all[i].ticket, i);
}

TEST(transport_with_a_way, what_a_rank_sends_to_itself_is_there_at_once) {
  const delayed mode("200us:50us:7");
  const test_clock clock(start);
  shm_job job(2);
  for (const message_class kind : both_classes) {
    ASSERT_TRUE(send(job.at(0), 0, kind, 1, 8));
    EXPECT_EQ(poll(job.at(0)).size(), 1u);
  }
}

TEST(transport_with_a_way, jitter_keeps_the_order_of_each_way) {
  for (const char* setting : {"200us:50us:7", "1us:1ms:8", "0us:10us"}) {
    const delayed mode{std::string(setting)};
    test_clock clock(start);
    shm_job job(3);
    std::minstd_rand random(7);
    std::map<std::pair<int, message_class>, std::uint64_t> sent, got;
    std::size_t delivered = 0;
    constexpr std::size_t messages = 300;
    for (std::size_t i = 0; i < messages; ++i) {
      const int from = 1 + static_cast<int>(random() % 2);
      const message_class kind = both_classes[random() % 2];
      ASSERT_TRUE(send(job.at(from), 0, kind, sent[{from, kind}]++, random() % 300));
      clock.advance(random() % 20'000);
    }
    while (delivered < messages) {
      const std::uint64_t before = now_ns();
      for (const received& m : poll(job.at(0), 3)) {
        ASSERT_EQ(m.ticket, (got[{m.source, m.kind}]++)) << setting;
        ++delivered;
      }
      if (delivered < messages) job.at(0).wait([] { return false; });
      ASSERT_LE(now_ns() - before, 1'001'000u) << "nothing is later than it can be";
    }
  }
}

TEST(transport_with_a_way, ranks_that_wait_get_what_others_send) {
  const delayed mode("100us:50us:3");
  shm_job job(2);
  constexpr std::size_t messages = 50;
  std::thread sender([&] {
    for (std::uint64_t i = 0; i < messages; ++i) {
      while (!send(job.at(0), 1, both_classes[i % 2], now_ns(), 8)) std::this_thread::yield();
      if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  std::size_t got = 0;
  while (got < messages) {
    job.at(1).wait([] { return false; });
    for (const received& m : poll(job.at(1))) {
      EXPECT_GE(now_ns(), m.ticket + 100'000);
      ++got;
    }
  }
  sender.join();
}

}  // namespace
