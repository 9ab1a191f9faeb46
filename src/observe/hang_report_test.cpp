// SPDX-License-Identifier: Apache-2.0
#include "observe/hang_report.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

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

/// Two ranks; the only fiber of rank 0 waits as `told`, and that of rank 1 for the ticket that it
/// would complete.
hang_report of_wait(fiber_record told) {
  hang_view view;
  view.why = "why";
  for (int r = 0; r < 2; ++r) {
    rank_view rank;
    rank.condition = rank_condition::waiting;
    rank.report.fibers_alive = rank.report.fiber_count = 1;
    fiber_record& fiber = rank.report.fibers[0];
    fiber = told;
    if (r == 1) {
      fiber.kind = wait_kind::call;
      fiber.rank = 0;
      fiber.left_ns = fiber_record::no_limit;
      std::swap(fiber.waits_for, fiber.result);
    }
    view.ranks.push_back(rank);
  }
  return explain(view, "");
}

fiber_record wait_of_kind(wait_kind kind) {
  fiber_record f{};
  f.kind = kind;
  f.rank = 1;
  f.holder = -1;
  f.left_ns = fiber_record::no_limit;
  f.waits_for = 7;
  f.result = 8;
  return f;
}

TEST(HangReport, TellsOfAFiberWhoseSlotAnotherRankReads) {
  hang_report report = of_wait(wait_of_kind(wait_kind::being_read));
  EXPECT_NE(report.sentence.find("waits until another rank has read frames"), std::string::npos)
      << report.sentence;
  EXPECT_NE(report.json.find("\"reader\""), std::string::npos) << report.json;
}

TEST(HangReport, NamesRanksThatPollWhetherOrNotTheyAreBetweenTwoTurns) {
  hang_view view;
  view.why = "why";
  for (int r = 0; r < 3; ++r) {
    rank_view rank;
    rank.condition = r == 1 ? rank_condition::waiting : rank_condition::computing;
    rank.report.fibers_alive = 1;
    if (r == 1) {
      rank.report.fiber_count = 1;
      rank.report.fibers[0] = wait_of_kind(wait_kind::ready);
    } else {
      rank.report.stack_count = 1;
    }
    view.ranks.push_back(rank);
  }
  EXPECT_EQ(explain(view, "").sentence,
            "rank 0 computes, rank 1 a fiber is ready to run, and so on");
}

TEST(HangReport, AWaitForTheFirstResultIsOfNoCircle) {
  EXPECT_EQ(of_wait(wait_of_kind(wait_kind::call)).sentence,
            "deadlock: rank 0 a fiber waits for rank 1 a fiber, which waits for rank 0 a fiber "
            "again");
  fiber_record first = wait_of_kind(wait_kind::first);
  first.results = 3;
  const hang_report report = of_wait(first);
  EXPECT_EQ(report.sentence,
            "rank 1 a fiber waits for rank 0 a fiber, which waits for the first of 3 results, one "
            "of them from rank 1");
  EXPECT_NE(report.text.find("waits for the first of 3 results, one of them from rank 1"),
            std::string::npos)
      << report.text;
  EXPECT_NE(report.json.find("\"first\""), std::string::npos) << report.json;
  first.results = 0;
  first.rank = -1;
  EXPECT_NE(of_wait(first).text.find("waits for the first of several results\n"),
            std::string::npos);
}

TEST(HangReport, AWaitWithATimeLimitIsOfNoCircle) {
  fiber_record timed = wait_of_kind(wait_kind::call);
  timed.left_ns = 1'200'000'000;
  EXPECT_EQ(of_wait(timed).sentence,
            "rank 1 a fiber waits for rank 0 a fiber, which waits for the answer of rank 1, a "
            "fiber, for another 1.2 s at most");
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
