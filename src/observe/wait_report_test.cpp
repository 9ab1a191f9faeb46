// SPDX-License-Identifier: Apache-2.0
#include "observe/wait_report.hpp"

#include <gtest/gtest.h>

#include <cstring>

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
  for (const wait_kind kind :
       {wait_kind::call, wait_kind::result, wait_kind::finish, wait_kind::mutex}) {
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

}  // namespace
