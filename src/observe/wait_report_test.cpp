// SPDX-License-Identifier: Apache-2.0
#include "observe/wait_report.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "transport/shm/layout.hpp"

namespace {

using namespace sojourn::detail;

TEST(wait_report, of_garbage_is_made_sound) {
  rank_report report;
  std::memset(static_cast<void*>(&report), 0x7f, sizeof report);
  make_sound(report, 4);
  EXPECT_EQ(report.fiber_count, rank_report::fibers_max);
  EXPECT_EQ(report.link_count, rank_report::links_max);
  EXPECT_EQ(report.stack_count, rank_report::stack_max);
  for (const fiber_record& fiber : report.fibers) {
    EXPECT_EQ(fiber.frame_count, fiber_record::frames_max);
    EXPECT_EQ(fiber.rank, -1);
    EXPECT_EQ(fiber.holder, -1);
  }
  EXPECT_EQ(report.held_count, rank_report::held_max);
  for (const held_mutex& held : report.held) EXPECT_EQ(held.fiber, held_mutex::untold);
}

TEST(wait_report, that_is_sound_stays_as_it_is) {
  rank_report report{};
  report.fiber_count = 2;
  report.fibers[0].rank = 3;
  report.fibers[0].holder = 1;
  report.fibers[0].frame_count = 2;
  report.fibers[1].holder = fiber_record::holder_runs;
  make_sound(report, 4);
  EXPECT_EQ(report.fiber_count, 2u);
  EXPECT_EQ(report.fibers[0].rank, 3);
  EXPECT_EQ(report.fibers[0].holder, 1);
  EXPECT_EQ(report.fibers[0].frame_count, 2);
  EXPECT_EQ(report.fibers[1].holder, fiber_record::holder_runs);
}

TEST(wait_report, tells_waits_that_only_a_fiber_can_end) {
  fiber_record f{};
  f.left_ns = fiber_record::no_limit;
  for (const wait_kind kind : {wait_kind::call, wait_kind::result, wait_kind::finish,
                               wait_kind::mutex, wait_kind::shared_mutex}) {
    f.kind = kind;
    EXPECT_TRUE(waits_for_a_fiber(f)) << static_cast<int>(kind);
  }
  f.left_ns = 5;
  EXPECT_FALSE(waits_for_a_fiber(f)) << "it goes on by itself";
  f.left_ns = fiber_record::no_limit;
  for (const wait_kind kind : {wait_kind::ready, wait_kind::collective, wait_kind::latch}) {
    f.kind = kind;
    EXPECT_FALSE(waits_for_a_fiber(f)) << static_cast<int>(kind);
  }
}

/// Three ranks that sleep for good: rank 1 has received the two messages that the others have sent.
struct sleeping_job : testing::Test {
  static constexpr int ranks = 3;

  void SetUp() override {
    for (int r = 0; r < ranks; ++r) {
      area.of(r).epoch.store(static_cast<std::uint64_t>(2 * r + 1));
      asleep_for_transport(r).store(1);
    }
    area.of(0).sent.store(1);
    area.of(2).sent.store(1);
    area.of(1).received.store(2);
  }
  std::atomic<std::uint32_t>& asleep_for_transport(int rank) {
    return shm::layout::wake_lines(wake_lines.at(0).bytes)[rank].asleep;
  }

  struct alignas(4096) page {
    std::byte bytes[4096];
  };
  static std::size_t pages(std::size_t bytes) { return (bytes + sizeof(page) - 1) / sizeof(page); }
  std::vector<page> memory = std::vector<page>(pages(watch_area::bytes(ranks)));
  std::vector<page> wake_lines = std::vector<page>(pages(sizeof(shm::wake_line) * ranks));
  watch_area area{memory.at(0).bytes, ranks, sleepers(wake_lines.at(0).bytes)};
};

TEST_F(sleeping_job, can_do_nothing_any_more) {
  EXPECT_EQ(area.ranks(), ranks);
  EXPECT_TRUE(area.nothing_can_happen());
  area.of(1).epoch.fetch_add(2);
  EXPECT_TRUE(area.nothing_can_happen()) << "however often it has slept";
}

TEST_F(sleeping_job, can_go_on_when_any_rank_does_not_sleep) {
  for (int r = 0; r < ranks; ++r) {
    EXPECT_TRUE(area.is_asleep(r));
    area.of(r).epoch.fetch_add(1);
    EXPECT_FALSE(area.is_asleep(r)) << "it is about to sleep, or has work";
    EXPECT_FALSE(area.nothing_can_happen());
    area.of(r).epoch.fetch_add(1);
    asleep_for_transport(r).store(0);
    EXPECT_FALSE(area.is_asleep(r)) << "it was woken, and has not run yet";
    EXPECT_FALSE(area.nothing_can_happen());
    asleep_for_transport(r).store(1);
    EXPECT_TRUE(area.nothing_can_happen());
  }
}

TEST_F(sleeping_job, can_go_on_when_any_rank_sleeps_until_a_time) {
  for (int r = 0; r < ranks; ++r) {
    EXPECT_FALSE(area.sleeps_for_a_time(r));
    area.of(r).wakes_at_ns.store(1);
    EXPECT_TRUE(area.sleeps_for_a_time(r));
    EXPECT_FALSE(area.nothing_can_happen());
    area.of(r).wakes_at_ns.store(0);
  }
}

TEST_F(sleeping_job, can_go_on_when_another_thread_may_post) {
  for (int r = 0; r < ranks; ++r) {
    area.of(r).may_be_woken.store(1);
    EXPECT_FALSE(area.nothing_can_happen());
    area.of(r).may_be_woken.store(0);
  }
}

TEST_F(sleeping_job, can_go_on_when_a_message_is_under_way) {
  for (int r = 0; r < ranks; ++r) {
    area.of(r).sent.fetch_add(1);
    EXPECT_FALSE(area.nothing_can_happen());
    area.of(r).received.fetch_add(1);
    EXPECT_TRUE(area.nothing_can_happen());
  }
}

TEST_F(sleeping_job, is_asked_for_reports_rank_by_rank) {
  asleep_for_transport(2).store(0);
  EXPECT_TRUE(area.ask(1, 7));
  EXPECT_FALSE(area.ask(2, 8, true)) << "it did not sleep";
  EXPECT_EQ(area.of(0).report_wanted.load(), 0u);
  EXPECT_EQ(area.of(1).report_wanted.load(), 7u);
  EXPECT_EQ(area.of(1).brief_wanted.load(), 0u);
  EXPECT_EQ(area.of(2).report_wanted.load(), 8u);
  EXPECT_EQ(area.of(2).brief_wanted.load(), 8u);
  EXPECT_TRUE(area.is_asleep(0));
  EXPECT_FALSE(area.is_asleep(1)) << "it was woken to answer";
  area.wake(0);
  EXPECT_FALSE(area.is_asleep(0));
}

}  // namespace
