// SPDX-License-Identifier: Apache-2.0
#include "observe/hang_report.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace {

using namespace sojourn::detail;

/// One rank, whose only fiber waits in a latch, and has a name of these bytes.
hang_report of_thread_named(const char (&bytes)[25]) {
  hang_view view;
  view.why = "why";
  rank_view rank;
  rank.condition = rank_condition::waiting;
  rank.report.fibers_alive = rank.report.fiber_count = 1;
  fiber_record& fiber = rank.report.fibers[0];
  fiber.kind = wait_kind::latch;
  fiber.rank = fiber.holder = -1;
  fiber.left_ns = fiber_record::no_limit;
  std::memcpy(fiber.thread, bytes, sizeof fiber.thread);
  view.ranks.push_back(rank);
  return explain(view, "");
}

TEST(HangReport, TellsAThreadByItsName) {
  hang_report report = of_thread_named("sleeper\0................");
  EXPECT_EQ(report.sentence, "rank 0 thread `sleeper` waits for a sojourn::latch");
  EXPECT_NE(report.json.find("\"thread\": \"sleeper\","), std::string::npos) << report.json;
}

TEST(HangReport, BoundsANameWithoutAnEnd) {
  // Records of other fibers follow the name in memory.
  hang_report report = of_thread_named(
      "\n2345678901\xff"
      "345678\"01234");
  EXPECT_EQ(report.sentence,
            "rank 0 thread `?2345678901?345678\"01234` waits for a sojourn::latch");
  EXPECT_NE(report.json.find("\"thread\": \"?2345678901?345678\\\"01234\","), std::string::npos)
      << report.json;
}

TEST(HangReport, OneWithoutANameHasNone) {
  hang_report report = of_thread_named("\0.......................");
  EXPECT_EQ(report.sentence, "rank 0 a fiber waits for a sojourn::latch");
  EXPECT_EQ(report.json.find("\"thread\""), std::string::npos) << report.json;
}

}  // namespace
