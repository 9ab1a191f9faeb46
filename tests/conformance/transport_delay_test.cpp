// SPDX-License-Identifier: Apache-2.0
// The test mode in which messages wait in their ways (SOJOURN_DELAY): it keeps each order that
// transport.hpp promises, and no other.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "sojourn/clock.hpp"
#include "transports.hpp"

namespace {

using namespace conformance;

constexpr message_class both_classes[] = {message_class::request, message_class::reply};

/// As long as it lives, transports that are made delay messages.
struct delayed {
  explicit delayed(std::uint64_t seed) { setenv("SOJOURN_DELAY", std::to_string(seed).c_str(), 1); }
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

}  // namespace
