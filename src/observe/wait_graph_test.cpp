// SPDX-License-Identifier: Apache-2.0
#include "observe/wait_graph.hpp"

#include <gtest/gtest.h>

#include "sojourn/detail/collective_plan.hpp"

namespace {

using namespace sojourn::detail;
using nodes = std::vector<int>;

/// What the ranks of a job tell. Nodes are numbered rank by rank: what runs, then the fibers.
struct told : hang_view {
  explicit told(std::size_t count) {
    ranks.resize(count);
    for (rank_view& r : ranks) r.condition = rank_condition::waiting;
  }

  fiber_record& fiber(std::size_t rank, wait_kind kind, int for_rank = -1) {
    rank_report& report = ranks[rank].report;
    fiber_record& f = report.fibers[report.fiber_count++];
    report.fibers_alive = report.fiber_count;
    f.kind = kind;
    f.rank = for_rank;
    f.holder = -1;
    f.left_ns = fiber_record::no_limit;
    return f;
  }
  /// A fiber of `rank` that handles a call (`result`) and waits for the answer of another.
  fiber_record& call(std::size_t rank, ticket_id result, ticket_id waits_for, int for_rank) {
    fiber_record& f = fiber(rank, wait_kind::call, for_rank);
    f.result = result;
    f.waits_for = waits_for;
    return f;
  }
  fiber_record& main(std::size_t rank, wait_kind kind, int for_rank = -1) {
    fiber_record& f = fiber(rank, kind, for_rank);
    f.is_main = true;
    return f;
  }
  void runs(std::size_t rank, ticket_id runs_for = 0) {
    ranks[rank].condition = rank_condition::computing;
    ranks[rank].report.stack_count = 1;
    ranks[rank].report.runs_for = runs_for;
  }
};

TEST(wait_graph, is_empty_when_nobody_tells) {
  told view(2);
  view.ranks[0].condition = rank_condition::silent;
  view.ranks[1].condition = rank_condition::finished;
  const wait_graph waits(view);
  EXPECT_TRUE(waits.nodes().empty());
  EXPECT_TRUE(waits.most_telling().nodes.empty());
  EXPECT_EQ(waits.where_all_lead(), -1);
  EXPECT_FALSE(waits.no_main_goes_on());
}

TEST(wait_graph, a_call_waits_for_the_fiber_that_handles_it) {
  told view(2);
  view.call(0, 0, 10, 1);
  view.fiber(1, wait_kind::latch);
  view.fiber(1, wait_kind::latch).result = 10;
  const wait_graph waits(view);
  EXPECT_EQ(waits.follow(0).nodes, (nodes{0, 2}));
  EXPECT_FALSE(waits.follow(0).closed);
}

TEST(wait_graph, a_call_that_no_fiber_handles_waits_for_what_runs_there) {
  told view(2);
  view.call(0, 0, 10, 1);
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
  view.runs(1);
  EXPECT_EQ(wait_graph(view).at(0).next, 1);
  view.runs(0, 11);  // node 0: so the call is node 1
  view.call(1, 0, 11, 0);
  EXPECT_EQ(wait_graph(view).at(3).next, 0) << "what runs gives the result";
}

TEST(wait_graph, a_result_leads_where_a_call_does) {
  told view(2);
  view.fiber(0, wait_kind::result).waits_for = 10;
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
  view.fiber(1, wait_kind::latch).result = 10;
  EXPECT_EQ(wait_graph(view).at(0).next, 1);
}

TEST(wait_graph, a_wait_without_a_ticket_leads_to_nobody_who_gives_no_result) {
  told view(2);
  view.fiber(0, wait_kind::result);
  view.fiber(1, wait_kind::latch);
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
}

TEST(wait_graph, a_call_to_a_rank_that_the_job_has_not_leads_nowhere) {
  told view(2);
  view.call(0, 0, 10, 2);
  view.runs(1);
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
}

TEST(wait_graph, results_are_followed_through_other_tickets) {
  told view(2);
  view.call(0, 0, 50, -1);
  view.fiber(1, wait_kind::latch).result = 10;
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
  view.ranks[1].report.links[0] = {10, 40};
  view.ranks[0].report.links[0] = {40, 50};
  view.ranks[0].report.link_count = view.ranks[1].report.link_count = 1;
  EXPECT_EQ(wait_graph(view).at(0).next, 1);
  view.ranks[1].report.links[0] = {50, 40};  // in a circle: a broken rank
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
}

TEST(wait_graph, a_mutex_leads_to_its_holder) {
  told view(1);
  fiber_record& waiter = view.fiber(0, wait_kind::mutex);
  view.fiber(0, wait_kind::time);
  waiter.holder = 1;
  EXPECT_EQ(wait_graph(view).at(0).next, 1);
  view.runs(0);
  EXPECT_EQ(wait_graph(view).at(1).next, 2);
  waiter.holder = fiber_record::holder_runs;
  EXPECT_EQ(wait_graph(view).at(1).next, 0);
  waiter.holder = -1;
  EXPECT_EQ(wait_graph(view).at(1).next, -1) << "the rank has not told of the holder";
}

TEST(wait_graph, a_mutex_leads_to_its_holder_behind_the_nodes_of_other_ranks) {
  told view(2);
  view.runs(0);
  view.fiber(0, wait_kind::latch);
  view.fiber(1, wait_kind::mutex).holder = 2;
  view.fiber(1, wait_kind::latch);
  view.fiber(1, wait_kind::latch);
  EXPECT_EQ(wait_graph(view).at(2).next, 4);
}

/// A fiber of `rank` has locked `mutex`.
void holds(told& view, std::size_t rank, std::uint64_t mutex, std::int32_t fiber) {
  rank_report& report = view.ranks[rank].report;
  report.held[report.held_count++] = {mutex, 0, fiber};
}

TEST(wait_graph, a_shared_mutex_leads_to_its_holder_on_any_rank) {
  told view(3);
  view.fiber(0, wait_kind::shared_mutex).object = 8;
  view.fiber(2, wait_kind::latch);
  view.fiber(2, wait_kind::latch);
  EXPECT_EQ(wait_graph(view).holding_of(0).mutex, nullptr);
  holds(view, 1, 7, 0);
  holds(view, 2, 8, 1);
  EXPECT_EQ(wait_graph(view).at(0).next, 2);
  EXPECT_EQ(wait_graph(view).holding_of(0).rank, 2);
  view.runs(2);
  view.ranks[2].report.held[0].fiber = fiber_record::holder_runs;
  EXPECT_EQ(wait_graph(view).at(0).next, 1);
  view.ranks[2].report.held[0].fiber = held_mutex::ended;
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
  EXPECT_EQ(wait_graph(view).holding_of(0).rank, 2) << "the rank is known";
}

/// Of so many fibers of `rank` so many are in shared::barrier().
void attends(told& view, std::size_t rank, std::uint32_t members, std::uint32_t arrived,
             std::uint32_t guests = 0) {
  view.ranks[rank].report.barrier = {members, arrived, guests};
}

TEST(wait_graph, a_shared_barrier_leads_to_who_is_absent) {
  told view(3);
  view.main(0, wait_kind::shared_barrier).takes_part = true;
  attends(view, 0, 1, 1);
  view.fiber(1, wait_kind::shared_barrier).takes_part = true;
  view.fiber(1, wait_kind::latch);
  view.fiber(1, wait_kind::latch).takes_part = true;
  attends(view, 1, 3, 1);
  view.runs(2);
  attends(view, 2, 1, 0);
  const wait_graph waits(view);
  ASSERT_EQ(waits.absent().size(), 2u);
  EXPECT_EQ(waits.absent()[0].rank, 1);
  EXPECT_EQ(waits.absent()[0].fibers, 2u);
  EXPECT_EQ(waits.absent()[1].rank, 2);
  EXPECT_EQ(waits.at(0).next, 3);
  view.ranks[1].report.barrier.arrived = 3;
  EXPECT_EQ(wait_graph(view).at(0).next, 4) << "what runs";
}

TEST(wait_graph, of_a_shared_barrier_ranks_that_do_not_tell_are_absent_if_no_other_is) {
  told view(3);
  view.main(0, wait_kind::shared_barrier).takes_part = true;
  attends(view, 0, 1, 1);
  attends(view, 1, 1, 0);
  view.ranks[2].condition = rank_condition::stopped;
  ASSERT_EQ(wait_graph(view).absent().size(), 1u);
  EXPECT_EQ(wait_graph(view).absent()[0].rank, 1);
  attends(view, 1, 1, 1);
  ASSERT_EQ(wait_graph(view).absent().size(), 1u);
  EXPECT_EQ(wait_graph(view).absent()[0].rank, 2);
}

TEST(wait_graph, who_has_arrived_on_another_rank_is_not_absent) {
  told view(2);
  view.main(0, wait_kind::result).takes_part = true;
  view.ranks[0].report.fibers[0].waits_for = 5;
  attends(view, 0, 1, 0);
  view.main(1, wait_kind::latch).takes_part = true;
  view.fiber(1, wait_kind::shared_barrier).result = 5;  // an activation of rank 0's main
  attends(view, 1, 1, 0, 1);
  const wait_graph waits(view);
  ASSERT_EQ(waits.absent().size(), 1u);
  EXPECT_EQ(waits.absent()[0].rank, 1);
  EXPECT_EQ(waits.at(2).next, 1);
}

TEST(wait_graph, a_local_barrier_leads_to_a_fiber_that_is_not_there) {
  told view(2);
  view.fiber(0, wait_kind::latch).takes_part = true;
  view.fiber(1, wait_kind::shared_local_barrier).takes_part = true;
  view.fiber(1, wait_kind::shared_local_barrier).takes_part = true;
  view.fiber(1, wait_kind::latch);
  view.fiber(1, wait_kind::latch).takes_part = true;
  EXPECT_EQ(wait_graph(view).at(1).next, 4);
}

TEST(wait_graph, counts_who_waits_at_a_counted_barrier) {
  told view(2);
  view.fiber(0, wait_kind::shared_counted_barrier).object = 8;
  view.fiber(1, wait_kind::shared_counted_barrier).object = 8;
  view.fiber(1, wait_kind::shared_counted_barrier).object = 9;
  view.fiber(1, wait_kind::shared_flag).object = 8;
  EXPECT_EQ(wait_graph(view).waiting_with(0), 2u);
}

TEST(wait_graph, a_sender_leads_to_what_runs_there_or_serves_it_or_to_main) {
  constexpr ticket_id of_rank_0 = 5;
  constexpr ticket_id of_rank_2 = ticket_id{2} << 48 | 5;
  told view(3);
  view.fiber(0, wait_kind::room, 1);
  view.fiber(1, wait_kind::latch).result = of_rank_2;
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
  view.main(1, wait_kind::latch);
  EXPECT_EQ(wait_graph(view).at(0).next, 2);
  view.fiber(1, wait_kind::latch).result = of_rank_0;
  EXPECT_EQ(wait_graph(view).at(0).next, 3);
  view.runs(2);
  EXPECT_EQ(wait_graph(view).at(0).next, 3);
  view.runs(1);
  EXPECT_EQ(wait_graph(view).at(0).next, 1);
}

TEST(wait_graph, a_fiber_that_waits_for_its_turn_leads_to_what_runs_on_its_rank) {
  told view(2);
  view.fiber(0, wait_kind::latch);
  view.fiber(1, wait_kind::ready);
  view.runs(0);
  EXPECT_EQ(wait_graph(view).at(2).next, -1);
  view.runs(1);
  EXPECT_EQ(wait_graph(view).at(3).next, 2);
}

TEST(wait_graph, a_fiber_that_waits_only_for_its_turn_tells_no_more_than_one_that_runs) {
  told view(2);
  view.fiber(0, wait_kind::ready);
  view.runs(1);
  EXPECT_TRUE(wait_graph(view).most_telling().nodes.empty());
  view.fiber(0, wait_kind::latch);
  EXPECT_EQ(wait_graph(view).most_telling().nodes, (nodes{1}));
}

TEST(wait_graph, a_main_after_its_body_leads_to_another_fiber_of_its_rank) {
  told view(2);
  view.fiber(0, wait_kind::latch);
  view.main(1, wait_kind::fibers);
  EXPECT_EQ(wait_graph(view).at(1).next, -1);
  view.fiber(1, wait_kind::latch);
  EXPECT_EQ(wait_graph(view).at(1).next, 2);
  view.ranks[1].report.fiber_count = 1;
  view.runs(1);
  EXPECT_EQ(wait_graph(view).at(2).next, 1);
}

TEST(wait_graph, waits_that_anyone_may_end_lead_nowhere) {
  for (const wait_kind kind :
       {wait_kind::unknown, wait_kind::first, wait_kind::time, wait_kind::condition,
        wait_kind::semaphore, wait_kind::latch, wait_kind::dist_object, wait_kind::barrier}) {
    told view(2);
    fiber_record& waits = view.fiber(0, kind, 1);
    waits.waits_for = 10;
    waits.holder = 1;
    view.main(0, wait_kind::latch).result = 10;
    view.runs(0);
    view.runs(1);
    EXPECT_EQ(wait_graph(view).at(1).next, -1) << static_cast<int>(kind);
  }
}

TEST(wait_graph, a_collective_leads_to_who_is_in_it_there_or_to_main) {
  told view(2);
  view.main(0, wait_kind::collective, 1);
  view.fiber(1, wait_kind::latch);
  view.main(1, wait_kind::time);
  EXPECT_EQ(wait_graph(view).at(0).next, 2);
  view.fiber(1, wait_kind::collective, 0);
  EXPECT_EQ(wait_graph(view).at(0).next, 3);
  view.runs(1);
  EXPECT_EQ(wait_graph(view).at(0).next, 1);
}

TEST(wait_graph, a_finish_leads_to_a_fiber_in_its_scope_or_to_what_runs) {
  told view(3);
  view.main(0, wait_kind::finish).waits_for = 99;
  view.fiber(1, wait_kind::time);
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
  view.runs(2);
  EXPECT_EQ(wait_graph(view).at(0).next, 2);
  view.ranks[1].report.fibers[0].scope = 99;
  EXPECT_EQ(wait_graph(view).at(0).next, 1);
}

TEST(wait_graph, a_finish_does_not_lead_to_itself) {
  told view(1);
  fiber_record& waits = view.fiber(0, wait_kind::finish);
  waits.waits_for = waits.scope = 99;
  EXPECT_EQ(wait_graph(view).at(0).next, -1);
}

TEST(wait_graph, a_way_ends_at_a_wait_with_a_time_limit) {
  told view(2);
  view.call(0, 1, 2, 1);  // 0 → 1 → 0
  view.call(1, 2, 1, 0);
  EXPECT_EQ(wait_graph(view).follow(0).nodes, (nodes{0, 1, 0}));
  EXPECT_TRUE(wait_graph(view).follow(0).closed);
  view.ranks[1].report.fibers[0].left_ns = 0;
  EXPECT_TRUE(has_limit(view.ranks[1].report.fibers[0]));
  EXPECT_EQ(wait_graph(view).follow(0).nodes, (nodes{0, 1}));
  EXPECT_FALSE(wait_graph(view).follow(0).closed);
  EXPECT_EQ(wait_graph(view).follow(1).nodes, (nodes{1}));
}

TEST(wait_graph, the_shortest_circle_tells_most) {
  told view(3);
  view.call(0, 1, 2, 1);  // 0 → 1 → 2 → 0
  view.call(1, 2, 3, 2);
  view.call(2, 3, 1, 0);
  view.call(0, 4, 5, 1);  // node 1 → node 3 → node 1
  view.call(1, 5, 4, 0);
  const wait_graph waits(view);
  EXPECT_EQ(waits.most_telling().nodes, (nodes{1, 3, 1}));
  EXPECT_TRUE(waits.most_telling().closed);
}

TEST(wait_graph, without_a_circle_the_longest_chain_tells_most) {
  told view(3);
  view.call(0, 0, 2, 1);
  view.call(1, 2, 3, 2);
  view.fiber(2, wait_kind::latch).result = 3;
  const wait_graph waits(view);
  EXPECT_EQ(waits.most_telling().nodes, (nodes{0, 1, 2}));
  EXPECT_FALSE(waits.most_telling().closed);
}

TEST(wait_graph, a_chain_to_code_that_runs_tells_more_than_a_longer_one) {
  told view(4);
  view.call(0, 0, 2, 1);
  view.call(1, 2, 3, 2);
  view.fiber(2, wait_kind::latch).result = 3;
  view.call(0, 0, 9, 3);
  EXPECT_EQ(wait_graph(view).most_telling().nodes, (nodes{0, 2, 3}));
  view.runs(3);
  EXPECT_EQ(wait_graph(view).most_telling().nodes, (nodes{1, 4}));
}

TEST(wait_graph, a_circle_tells_more_than_a_chain_from_a_body_to_code_that_runs) {
  told view(2);
  view.main(0, wait_kind::collective, 1);
  view.call(0, 2, 3, 0);
  view.call(0, 3, 2, 0);
  view.runs(1);
  EXPECT_EQ(wait_graph(view).most_telling().nodes, (nodes{1, 2, 1}));
}

TEST(wait_graph, of_circles_the_one_that_a_body_leads_to_tells_most) {
  told view(1);
  view.call(0, 1, 2, 0);
  view.call(0, 2, 1, 0);
  view.main(0, wait_kind::call).waits_for = 1;
  EXPECT_EQ(wait_graph(view).most_telling().nodes, (nodes{2, 0, 1, 0}));
}

TEST(wait_graph, knows_which_mains_are_in_their_body) {
  told view(1);
  fiber_record& f = view.fiber(0, wait_kind::collective);
  EXPECT_FALSE(is_in_body(f)) << "it is no main";
  f.is_main = true;
  f.operation = static_cast<std::uint8_t>(collective::barrier);
  EXPECT_TRUE(is_in_body(f));
  f.operation = static_cast<std::uint8_t>(collective::end_of_program);
  EXPECT_FALSE(is_in_body(f));
  f.operation = static_cast<std::uint8_t>(collective::barrier);
  f.kind = wait_kind::fibers;
  EXPECT_FALSE(is_in_body(f));
}

TEST(wait_graph, a_chain_to_a_rank_that_is_held_tells_more_than_a_longer_one) {
  for (const rank_condition held :
       {rank_condition::stopped, rank_condition::frozen, rank_condition::dying}) {
    told view(4);
    view.call(0, 0, 2, 1);
    view.call(1, 2, 3, 2);
    view.fiber(2, wait_kind::latch).result = 3;
    view.call(0, 0, 9, 3);
    view.ranks[3].condition = held;
    EXPECT_EQ(wait_graph(view).most_telling().nodes, (nodes{1}));
    view.ranks[3].condition = rank_condition::silent;
    EXPECT_EQ(wait_graph(view).most_telling().nodes.size(), 3u);
  }
}

TEST(wait_graph, a_chain_from_a_body_tells_more_than_a_longer_one) {
  told view(2);
  view.call(0, 0, 2, 1);
  view.fiber(1, wait_kind::latch).result = 2;
  view.main(1, wait_kind::latch);
  EXPECT_EQ(wait_graph(view).most_telling().nodes, (nodes{2}));
  view.ranks[1].report.fibers[1].operation = static_cast<std::uint8_t>(collective::end_of_program);
  EXPECT_EQ(wait_graph(view).most_telling().nodes, (nodes{0, 1}));
}

TEST(wait_graph, all_may_lead_to_code_that_runs) {
  told view(3);
  view.main(0, wait_kind::collective, 1);
  view.main(1, wait_kind::collective, 2);
  view.runs(2);
  EXPECT_EQ(wait_graph(view).where_all_lead(), 2);
  view.fiber(0, wait_kind::latch);
  EXPECT_EQ(wait_graph(view).where_all_lead(), -1);
}

TEST(wait_graph, not_all_lead_to_one_of_two_that_run) {
  told view(3);
  view.main(0, wait_kind::collective, 1);
  view.runs(1);
  view.runs(2);
  EXPECT_EQ(wait_graph(view).where_all_lead(), -1);
}

TEST(wait_graph, not_all_lead_to_code_that_runs_when_some_wait_in_a_circle) {
  told view(2);
  view.main(0, wait_kind::collective, 1);
  view.runs(1);
  EXPECT_EQ(wait_graph(view).where_all_lead(), 1);
  view.call(0, 2, 3, 0);
  view.call(0, 3, 2, 0);
  EXPECT_EQ(wait_graph(view).where_all_lead(), -1);
}

TEST(wait_graph, counts_fibers_that_nobody_tells_of) {
  told view(2);
  view.fiber(0, wait_kind::latch);
  view.ranks[0].report.fibers_alive = 70;
  view.runs(1);
  view.ranks[1].report.fibers_alive = 3;
  EXPECT_EQ(wait_graph(view).untold(), 69u + 2u);
}

TEST(wait_graph, a_fiber_in_a_proven_circle_waits_for_the_next_one) {
  told view(2);
  view.fiber(0, wait_kind::finish).waits_for = 99;
  view.fiber(1, wait_kind::time).scope = 99;
  view.call(1, 0, 7, 0).scope = 99;
  view.ranks[0].report.fibers[0].result = 7;
  EXPECT_EQ(wait_graph(view).at(0).next, 1);
  view.circle = {{0, 0}, {1, 1}};
  const wait_graph waits(view);
  EXPECT_EQ(waits.at(0).next, 2);
  EXPECT_EQ(waits.proven_circle(), (nodes{0, 2, 0}));
}

TEST(wait_graph, a_proven_circle_is_found_behind_the_nodes_of_what_runs) {
  told view(2);
  view.runs(0);
  view.fiber(0, wait_kind::latch);
  view.call(0, 2, 3, 1);
  view.runs(1);
  view.call(1, 3, 2, 0);
  view.circle = {{0, 1}, {1, 0}};
  EXPECT_EQ(wait_graph(view).proven_circle(), (nodes{2, 4, 2}));
}

TEST(wait_graph, others_may_unlock_a_shared_mutex_of_the_proven_circle) {
  told view(2);
  view.main(0, wait_kind::shared_mutex).object = 8;
  view.main(1, wait_kind::call, 0).waits_for = 5;
  view.ranks[0].report.fibers[0].result = 5;
  holds(view, 1, 8, 0);
  view.circle = {{0, 0}, {1, 0}};
  EXPECT_EQ(wait_graph(view).proven_circle(), (nodes{0, 1, 0}));
  EXPECT_FALSE(wait_graph(view).no_main_goes_on());
}

TEST(wait_graph, no_main_goes_on_when_each_waits_for_the_proven_circle) {
  told view(3);
  view.main(0, wait_kind::call, 1).waits_for = 5;
  view.call(1, 5, 6, 1);
  view.call(1, 6, 5, 1);
  view.main(1, wait_kind::fibers);
  view.ranks[2].condition = rank_condition::finished;
  EXPECT_FALSE(wait_graph(view).no_main_goes_on()) << "nothing is proven";
  view.circle = {{1, 0}, {1, 1}};
  EXPECT_TRUE(wait_graph(view).no_main_goes_on());
  view.ranks[2].condition = rank_condition::silent;
  EXPECT_FALSE(wait_graph(view).no_main_goes_on()) << "of rank 2 nobody knows";
  view.ranks[2].condition = rank_condition::waiting;
  view.main(2, wait_kind::time);
  EXPECT_FALSE(wait_graph(view).no_main_goes_on());
}

}  // namespace
