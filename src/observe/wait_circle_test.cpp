// SPDX-License-Identifier: Apache-2.0
#include "observe/wait_circle.hpp"

#include <gtest/gtest.h>

namespace {

using namespace sojourn::detail;

/// Rank 0's fiber and rank 1's: each handles a call of the other, and waits for the answer of one.
hang_view two_that_call_each_other() {
  hang_view view;
  view.ranks.resize(2);
  for (int r = 0; r < 2; ++r) {
    rank_view& rank = view.ranks[static_cast<std::size_t>(r)];
    rank.condition = rank_condition::waiting;
    rank.report.fiber_count = rank.report.fibers_alive = 1;
    fiber_record& fiber = rank.report.fibers[0];
    fiber.kind = wait_kind::call;
    fiber.piece = 7;
    fiber.since = 1000;
    fiber.waits_for = static_cast<ticket_id>(10 + r);
    fiber.result = static_cast<ticket_id>(11 - r);
    fiber.left_ns = fiber_record::no_limit;
    fiber.holder = -1;
    fiber.rank = 1 - r;
  }
  return view;
}
fiber_record& fiber_of(hang_view& view, std::size_t rank) {
  return view.ranks[rank].report.fibers[0];
}

TEST(wait_circle, is_found_among_those_that_still_wait) {
  const hang_view view = two_that_call_each_other();
  EXPECT_EQ(circle_of_waits(view, view).size(), 2u);
}

TEST(wait_circle, is_none_when_one_has_gone_on_meanwhile) {
  const hang_view before = two_that_call_each_other();
  hang_view now = before;
  fiber_of(now, 1).since = 2000;
  EXPECT_TRUE(circle_of_waits(before, now).empty());
  now = before;
  fiber_of(now, 1).piece = 8;
  EXPECT_TRUE(circle_of_waits(before, now).empty());
}

TEST(wait_circle, is_none_when_one_waits_for_a_time_at_most) {
  hang_view view = two_that_call_each_other();
  fiber_of(view, 0).left_ns = 5;
  EXPECT_TRUE(circle_of_waits(view, view).empty());
}

TEST(wait_circle, is_none_when_others_may_help) {
  for (const wait_kind kind : {wait_kind::semaphore, wait_kind::condition, wait_kind::collective,
                               wait_kind::room, wait_kind::ready, wait_kind::unknown}) {
    hang_view view = two_that_call_each_other();
    fiber_of(view, 0).kind = kind;
    EXPECT_TRUE(circle_of_waits(view, view).empty()) << static_cast<int>(kind);
  }
}

TEST(wait_circle, goes_through_a_mutex_and_its_holder) {
  hang_view view = two_that_call_each_other();
  rank_report& report = view.ranks[0].report;
  report.fibers[1] = report.fibers[0];  // holds the mutex, and calls rank 1
  report.fibers[1].piece = 8;
  report.fibers[1].result = 0;
  report.fibers[0].kind = wait_kind::mutex;
  report.fibers[0].waits_for = 0;
  report.fibers[0].holder = 1;
  report.fiber_count = report.fibers_alive = 2;
  EXPECT_EQ(circle_of_waits(view, view).size(), 3u);
  report.fibers[0].holder = fiber_record::holder_runs;
  EXPECT_TRUE(circle_of_waits(view, view).empty());
}

TEST(wait_circle, goes_through_shared_mutexes_and_their_holders) {
  hang_view view = two_that_call_each_other();
  for (std::size_t r = 0; r < 2; ++r) {
    fiber_of(view, r).kind = wait_kind::shared_mutex;
    fiber_of(view, r).object = 80 + r;
    rank_report& report = view.ranks[r].report;
    report.held[report.held_count++] = {81 - r, 0, 0};
  }
  EXPECT_EQ(circle_of_waits(view, view).size(), 2u);
  view.ranks[1].report.held[0].fiber = held_mutex::ended;
  EXPECT_TRUE(circle_of_waits(view, view).empty());
}

TEST(wait_circle, goes_through_a_finish_and_any_that_it_waits_for) {
  hang_view view = two_that_call_each_other();
  fiber_record& in_finish = fiber_of(view, 0);
  in_finish.kind = wait_kind::finish;
  in_finish.waits_for = 99;
  rank_report& report = view.ranks[1].report;
  report.fibers[1] = report.fibers[0];
  report.fibers[0].piece = 8;
  report.fibers[0].kind = wait_kind::time;  // a thread that sleeps, in the same finish
  for (fiber_record* f : {&report.fibers[0], &report.fibers[1]}) f->scope = 99;
  report.fibers[1].waits_for = in_finish.result;
  report.fiber_count = report.fibers_alive = 2;
  EXPECT_EQ(circle_of_waits(view, view).size(), 2u);
}

TEST(wait_circle, follows_results_that_go_on_to_other_tickets) {
  hang_view view = two_that_call_each_other();
  fiber_of(view, 0).waits_for = 50;
  EXPECT_TRUE(circle_of_waits(view, view).empty());
  view.ranks[1].report.links[0] = {10, 50};
  view.ranks[1].report.link_count = 1;
  EXPECT_EQ(circle_of_waits(view, view).size(), 2u);
}

}  // namespace
