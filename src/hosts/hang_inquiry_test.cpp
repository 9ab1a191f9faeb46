// SPDX-License-Identifier: Apache-2.0
#include "hosts/hang_inquiry.hpp"

#include <gtest/gtest.h>

using namespace sojourn::detail;

namespace {

using condition = rank_condition;

/// Two hosts, of two ranks and of one.
struct a_job {
  std::vector<condition> untold = {condition::silent, condition::silent};
  hang_inquiry hangs{{2, 1}, [this](std::size_t host) { return untold[host]; }};
};

std::vector<rank_view> waiting(std::size_t ranks) {
  std::vector<rank_view> all(ranks);
  for (rank_view& r : all) r.condition = condition::waiting;
  return all;
}

TEST(a_job_stands_still, when_all_its_hosts_do_and_some_ranks_wait) {
  a_job job;
  EXPECT_FALSE(job.hangs.hear_standstill(0, true));
  EXPECT_TRUE(job.hangs.hear_standstill(1, false));
}

TEST(a_job_stands_still, not_where_each_rank_computes) {
  a_job job;
  EXPECT_FALSE(job.hangs.hear_standstill(0, false));
  EXPECT_FALSE(job.hangs.hear_standstill(1, false));
}

TEST(a_job_stands_still, also_when_the_other_hosts_have_finished) {
  a_job job;
  job.untold[1] = condition::finished;
  EXPECT_TRUE(job.hangs.hear_standstill(0, true));
}

TEST(a_job_stands_still, is_said_once_until_a_host_goes_on) {
  a_job job;
  job.hangs.hear_standstill(0, true);
  EXPECT_TRUE(job.hangs.hear_standstill(1, true));
  EXPECT_FALSE(job.hangs.hear_standstill(1, true));
  job.hangs.hear_going_on(0);
  EXPECT_FALSE(job.hangs.hear_standstill(1, true)) << "host 0 goes on";
  EXPECT_TRUE(job.hangs.hear_standstill(0, true));
}

TEST(an_inquiry, is_complete_with_the_answers_of_all_hosts_that_have_not_finished) {
  a_job job;
  EXPECT_FALSE(job.hangs.is_complete()) << "nobody has asked";
  EXPECT_TRUE(job.hangs.begin("why", false, {}));
  job.hangs.hear_waits(0, waiting(2));
  EXPECT_FALSE(job.hangs.is_complete());
  job.untold[1] = condition::finished;
  EXPECT_TRUE(job.hangs.is_complete());
  const hang_view view = job.hangs.end();
  EXPECT_EQ(view.why, "why");
  ASSERT_EQ(view.ranks.size(), 3u);
  EXPECT_EQ(view.ranks[1].condition, condition::waiting);
  EXPECT_EQ(view.ranks[2].condition, condition::finished);
  EXPECT_FALSE(job.hangs.is_complete()) << "it has ended";
}

TEST(an_inquiry, ends_at_a_deadline_with_the_answers_that_have_come) {
  a_job job;
  EXPECT_FALSE(job.hangs.deadline());
  const hang_inquiry::time now = hang_inquiry::clock::now();
  job.hangs.begin("why", false, now);
  EXPECT_GT(job.hangs.deadline(), now);
  job.hangs.hear_waits(1, waiting(1));
  const hang_view view = job.hangs.end();
  EXPECT_EQ(view.ranks[0].condition, condition::silent);
  EXPECT_EQ(view.ranks[2].condition, condition::waiting);
  EXPECT_FALSE(job.hangs.deadline());
}

TEST(an_inquiry, is_made_once_at_a_time_and_a_proof_takes_the_place_of_its_reason) {
  a_job job;
  EXPECT_TRUE(job.hangs.begin("somebody asked", false, {}));
  job.hangs.hear_waits(0, waiting(2));
  EXPECT_FALSE(job.hangs.begin("nothing can happen", true, {}));
  EXPECT_FALSE(job.hangs.begin("somebody asked again", false, {}));
  job.hangs.hear_waits(1, waiting(1));
  ASSERT_TRUE(job.hangs.is_complete());
  const hang_view view = job.hangs.end();
  EXPECT_EQ(view.why, "nothing can happen");
  EXPECT_TRUE(view.proven);
}

TEST(an_inquiry, forgets_the_answers_to_the_one_before) {
  a_job job;
  job.hangs.begin("why", false, {});
  job.hangs.hear_waits(0, waiting(2));
  job.hangs.hear_waits(1, waiting(1));
  job.hangs.end();
  job.hangs.begin("why", false, {});
  EXPECT_FALSE(job.hangs.is_complete());
}

}  // namespace
