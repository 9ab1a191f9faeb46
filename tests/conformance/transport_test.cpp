// SPDX-License-Identifier: Apache-2.0
// The contract of transport.hpp, one operation at a time: a single thread plays all ranks.
#include <algorithm>
#include <random>
#include <utility>

#include "far_job.hpp"
#include "transports.hpp"

namespace {

using namespace conformance;

constexpr message_class both_classes[] = {message_class::request, message_class::reply};

template <class Job>
struct transport_contract : transport_test<Job> {};
using jobs = testing::Types<shm_job, shm_job_near_wrap, shm_job_near_look, far_job,
                            far_job_of_unequal_hosts, far_job_near_wrap, far_sealed_job, ucx_job>;
struct job_name {
  template <class Job>
  static std::string GetName(int) {
    return Job::name;
  }
};
TYPED_TEST_SUITE(transport_contract, jobs, job_name);

TYPED_TEST(transport_contract, a_message_arrives_whole_and_once_with_what_was_said_of_it) {
  TypeParam job(3);
  for (int to : {0, 1, 2}) {  // to itself, too
    for (message_class kind : both_classes) {
      EXPECT_FALSE(job.at(to).anything_arrived());
      ASSERT_TRUE(send(job.at(1), to, kind, 0xfeedfacecafebeef, 200, 513, 0x1234));
      job.settle();
      EXPECT_TRUE(job.at(to).anything_arrived());
      auto got = poll_at(job, to);
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].source, 1);
      EXPECT_EQ(got[0].kind, kind);
      EXPECT_EQ(got[0].handler, 513);
      EXPECT_EQ(got[0].flags, 0x1234);
      EXPECT_EQ(got[0].ticket, 0xfeedfacecafebeef);
      EXPECT_EQ(got[0].bytes.size(), 200u);
      EXPECT_TRUE(content_is_right(got[0]));
      EXPECT_FALSE(job.at(to).anything_arrived());
      EXPECT_EQ(poll_at(job, to).size(), 0u);
    }
  }
  EXPECT_EQ(poll_at(job, 0).size() + poll_at(job, 2).size(), 0u);
}

TYPED_TEST(transport_contract, what_is_reserved_and_not_committed_is_not_seen) {
  TypeParam job(2);
  ASSERT_NE(job.at(0).reserve(1, message_class::request, 100), nullptr);
  EXPECT_FALSE(job.at(1).anything_arrived());
  EXPECT_EQ(poll_at(job, 1).size(), 0u);
}

TYPED_TEST(transport_contract, every_length_arrives) {
  TypeParam job(2);
  std::size_t most = job.at(0).payload_max();
  EXPECT_GE(most, std::size_t{1} << 20);
  std::vector<std::size_t> lengths{0,         1,     15,    16,      47,        48,
                                   49,        112,   1000,  8175,    8176,      8192 - 16,
                                   8192 - 15, 16384, 65536, 100'000, 256 << 10, (256 << 10) + 1,
                                   1 << 20,   most};
  std::uint64_t ticket = 0;
  for (std::size_t bytes : lengths) {
    for (message_class kind : both_classes) {
      ASSERT_TRUE(send(job.at(0), 1, kind, ++ticket, bytes)) << bytes;
      auto got = poll_at(job, 1);
      ASSERT_EQ(got.size(), 1u) << bytes;
      EXPECT_EQ(got[0].bytes.size(), bytes);
      EXPECT_EQ(got[0].flags, 0) << "transports keep their flags to themselves";
      EXPECT_TRUE(content_is_right(got[0])) << bytes;
    }
  }
}

TYPED_TEST(transport_contract, messages_of_a_class_arrive_in_order_short_and_long) {
  TypeParam job(2);
  std::minstd_rand random(5);
  std::uint64_t sent[2] = {0, 0};
  std::uint64_t got[2] = {0, 0};
  for (int i = 0; i < 4000; ++i) {
    auto kind = both_classes[random() % 2];
    auto k = static_cast<std::size_t>(kind);
    std::size_t bytes = random() % 50 == 0 ? 100'000 + random() % 300'000 : random() % 300;
    if (send(job.at(0), 1, kind, sent[k], bytes)) ++sent[k];
    if (random() % 3 == 0) {
      for (const auto& m : poll_at(job, 1, static_cast<int>(1 + random() % 5))) {
        ASSERT_EQ(m.ticket, got[static_cast<std::size_t>(m.kind)]++);
        ASSERT_TRUE(content_is_right(m));
      }
    }
  }
  for (const auto& m : poll_at(job, 1)) {
    ASSERT_EQ(m.ticket, got[static_cast<std::size_t>(m.kind)]++);
  }
  EXPECT_EQ(got[0], sent[0]);
  EXPECT_EQ(got[1], sent[1]);
  EXPECT_GT(sent[0], 1000u);
}

// Replies about shared memory are wanted while the program computes, whatever lies before them.
TYPED_TEST(transport_contract, replies_for_one_handler_are_taken_past_all_others) {
  static constexpr int wanted = 7, others = 8;
  TypeParam job(3);
  std::minstd_rand random(6);
  std::uint64_t sent[3] = {}, got[3] = {}, wanted_sent = 0, wanted_got = 0;
  struct taken {
    transport& at;
    std::uint64_t& count;
  } all_wanted{job.at(1), wanted_got};
  const auto take = [&](const received& m) {
    ASSERT_EQ(m.handler, others);
    ASSERT_EQ(m.ticket, got[m.source]++);
    ASSERT_TRUE(content_is_right(m));
  };
  for (int i = 0; i < 3000; ++i) {
    const int source = static_cast<int>(random() % 2) * 2;
    const std::size_t bytes = random() % 50 == 0 ? 100'000 + random() % 300'000 : random() % 300;
    if (random() % 4 == 0)
      wanted_sent += send(job.at(source), 1, message_class::reply, 5, 40, wanted) ? 1 : 0;
    else
      sent[source] +=
          send(job.at(source), 1, message_class::reply, sent[source], bytes, others) ? 1 : 0;
    if (random() % 20 == 0) {
      job.settle();
      job.at(1).poll_replies(
          [](arrival& a, void* context) {
            EXPECT_EQ(a.handler, wanted);
            auto& [at, count] = *static_cast<taken*>(context);
            at.consume(a);
            ++count;
            return false;
          },
          &all_wanted, 1 << 20, wanted);
    }
    if (random() % 20 != 0) continue;
    job.settle();
    EXPECT_EQ(job.at(1).anything_arrived(),
              sent[0] + sent[2] != got[0] + got[2] || wanted_sent != wanted_got);
    for (const auto& m : poll_at(job, 1, static_cast<int>(1 + random() % 9), random() % 9)) {
      if (m.handler == wanted)
        ++wanted_got;
      else
        take(m);
    }
  }
  while (job.at(1).anything_arrived())
    for (const auto& m : poll_at(job, 1)) {
      if (m.handler == wanted)
        ++wanted_got;
      else
        take(m);
    }
  EXPECT_EQ(got[0], sent[0]);
  EXPECT_EQ(got[2], sent[2]);
  EXPECT_EQ(wanted_got, wanted_sent);
  EXPECT_GT(wanted_sent, 100u);
  EXPECT_GT(sent[0], 100u);
}

// However few of those there is room for on the way.
TYPED_TEST(transport_contract, replies_for_one_handler_are_taken_past_long_ones) {
  static constexpr int wanted = 7, others = 8;
  TypeParam job(2);
  for (std::uint64_t i = 0; i < 10; ++i)
    ASSERT_TRUE(send(job.at(0), 1, message_class::reply, i, 300'000, others));
  ASSERT_TRUE(send(job.at(0), 1, message_class::reply, 99, 40, wanted));
  int taken = 0;
  for (int looks = 0; looks < 100 && taken == 0; ++looks) {
    job.settle();
    taken = job.at(1).poll_replies(
        [](arrival& a, void* at) {
          EXPECT_EQ(a.ticket, 99u);
          static_cast<transport*>(at)->consume(a);
          return false;
        },
        &job.at(1), 1 << 20, wanted);
  }
  EXPECT_EQ(taken, 1);
  std::uint64_t got = 0;
  for (const auto& m : poll_all(job, 1)) {
    EXPECT_EQ(m.ticket, got++);
    EXPECT_TRUE(content_is_right(m));
  }
  EXPECT_EQ(got, 10u);
}

TYPED_TEST(transport_contract, a_full_way_refuses_until_messages_are_consumed) {
  TypeParam job(2);
  for (std::size_t bytes : {std::size_t{20}, std::size_t{4000}, std::size_t{100'000}}) {
    std::uint64_t sent = 0;
    while (send(job.at(0), 1, message_class::request, sent, bytes)) ASSERT_LT(++sent, 100'000u);
    EXPECT_GE(sent, 4u) << bytes;
    EXPECT_FALSE(job.at(0).has_room(1, message_class::request, bytes));
    EXPECT_EQ(job.at(0).reserve(1, message_class::request, bytes), nullptr) << "again";
    // All come, then there is room as before.
    std::uint64_t got = 0;
    for (const auto& m : poll_all(job, 1)) {
      EXPECT_EQ(m.ticket, got++);
      EXPECT_TRUE(content_is_right(m));
    }
    EXPECT_EQ(got, sent);
    EXPECT_TRUE(job.at(0).has_room(1, message_class::request, bytes));
    std::uint64_t again = 0;
    while (send(job.at(0), 1, message_class::request, again, bytes)) ++again;
    EXPECT_GE(again + 1, sent * 3 / 4) << bytes << " bytes: room is lost";
    poll_all(job, 1);
  }
}

TYPED_TEST(transport_contract, full_requests_hold_up_neither_replies_nor_other_ranks) {
  TypeParam job(3);
  while (send(job.at(0), 1, message_class::request, 1, 500)) {
  }
  EXPECT_TRUE(send(job.at(0), 1, message_class::reply, 77, 500));
  EXPECT_TRUE(send(job.at(0), 2, message_class::request, 78, 500));
  EXPECT_TRUE(send(job.at(2), 1, message_class::request, 79, 500));
  EXPECT_TRUE(send(job.at(1), 0, message_class::request, 80, 500));
  // The reply comes before the requests that were there first.
  auto got = poll_at(job, 1, 1, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].ticket, 77u);
  EXPECT_EQ(poll_at(job, 2).size(), 1u);
  EXPECT_EQ(poll_at(job, 0).size(), 1u);
}

TYPED_TEST(transport_contract, poll_takes_turns_among_ranks_and_stops_when_told) {
  TypeParam job(4);
  for (std::uint64_t i = 0; i < 10; ++i) {
    for (int r = 0; r < 4; ++r) ASSERT_TRUE(send(job.at(r), 0, message_class::request, i, 8));
  }
  // At most two of each rank.
  std::vector<int> of(4);
  for (const auto& m : poll_at(job, 0, 2)) ++of[static_cast<std::size_t>(m.source)];
  EXPECT_EQ(of, (std::vector<int>{2, 2, 2, 2}));
  // Told to stop after one each time, no rank waits longer than the others have a turn.
  std::vector<int> order;
  for (int i = 0; i < 8; ++i) {
    auto got = poll_at(job, 0, 2, 1);
    ASSERT_EQ(got.size(), 1u);
    order.push_back(got[0].source);
  }
  for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(order[i], order[i - 4]);
  std::vector<int> first(order.begin(), order.begin() + 4);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, (std::vector<int>{0, 1, 2, 3}));
}

TYPED_TEST(transport_contract, requests_come_though_replies_never_cease) {
  TypeParam job(3);
  constexpr int most = 4;
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(send(job.at(2), 0, message_class::request, 1000 + i, 8));
  }
  std::vector<int> came_after;  // replies, for each request
  int replies = 0;
  for (std::uint64_t i = 0; came_after.size() < 3; ++i) {
    ASSERT_LT(replies, 100) << "requests wait as long as replies come";
    ASSERT_TRUE(send(job.at(1), 0, message_class::reply, i, 8));
    // A reply makes something ready: the poll stops there.
    for (const auto& m : poll_at(job, 0, most, 1)) {
      if (m.kind == message_class::request) {
        came_after.push_back(std::exchange(replies, 0));
      } else {
        ++replies;
      }
    }
  }
  EXPECT_EQ(came_after[1], most);
}

TYPED_TEST(transport_contract, prepare_changes_nothing_that_is_seen) {
  TypeParam job(2);
  for (std::size_t bytes : {std::size_t{8}, std::size_t{4000}, std::size_t{100'000}}) {
    for (std::uint64_t i = 0; i < 30; ++i) {
      job.at(0).prepare(1, message_class::request);
      if (i % 3 == 0) {
        EXPECT_EQ(poll_at(job, 1).size(), i == 0 ? 0u : 3u);
      }
      ASSERT_TRUE(send(job.at(0), 1, message_class::request, i, bytes));
    }
    for (const auto& m : poll_at(job, 1)) EXPECT_TRUE(content_is_right(m));
  }
}

TYPED_TEST(transport_contract, a_message_is_valid_until_it_is_consumed) {
  TypeParam job(2);
  // Handled in the middle of sending more: what is being read stays as it is.
  ASSERT_TRUE(send(job.at(0), 1, message_class::request, 1, 300));
  struct context {
    TypeParam& job;
    bool right;
  } c{job, true};
  job.at(1).poll(
      [](arrival& a, void* p) {
        auto& ctx = *static_cast<context*>(p);
        while (send(ctx.job.at(0), 1, message_class::request, 2, 300)) {
        }
        for (std::size_t i = 0; i < a.bytes; ++i) {
          ctx.right &= a.payload[i] == std::byte{byte_of(1, i)};
        }
        ctx.job.at(1).consume(a);
        return true;
      },
      &c, 1);
  EXPECT_TRUE(c.right);
}

}  // namespace
