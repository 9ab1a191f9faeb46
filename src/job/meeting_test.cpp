// SPDX-License-Identifier: Apache-2.0
#include "job/meeting.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "sojourn/errors.hpp"

using namespace sojourn::detail;

namespace {

constexpr int ranks = 3;
bool has_rung = false;

/// A job whose ranks have introduced themselves, all as this process.
struct ranks_that_meet : testing::Test {
  ranks_that_meet() {
    has_rung = false;
    for (int r = 0; r < ranks; ++r) introduce_myself(segment.ranks[r]);
  }
  ~ranks_that_meet() override {
    munmap(&segment, segment.segment_bytes);
    close(fds.segment);
    close(fds.bell);
  }
  std::string refusal() const {
    try {
      compare_ranks(segment);
    } catch (const sojourn::error& e) {
      return e.what();
    }
    return "";
  }

  const job_fds fds = create_job({.ranks = ranks, .share_heap = false});
  job_segment& segment = *map_job(fds.segment);
};

TEST_F(ranks_that_meet, are_one_job_when_they_are_alike) { EXPECT_EQ(refusal(), ""); }

TEST_F(ranks_that_meet, must_have_the_same_memory) {
  segment.ranks[1].region_bytes = std::uint64_t{3} << 30;
  segment.ranks[0].region_bytes = segment.ranks[2].region_bytes = std::uint64_t{2} << 30;
  EXPECT_EQ(refusal(),
            "rank 0 has SOJOURN_REGION_GIB=2 and rank 1 has 3: start all ranks of a job with the "
            "same");
}

TEST_F(ranks_that_meet, run_one_program_unless_they_were_started_as_several) {
  ++segment.ranks[2].image;
  EXPECT_NE(refusal().find("ranks 0 and 2 run different programs"), std::string::npos);
  segment.ranks[2].part = 1;
  EXPECT_EQ(refusal(), "");
}

TEST_F(ranks_that_meet, speak_with_the_same_messages_whatever_program_they_run) {
  segment.ranks[2].part = 1;
  ++segment.ranks[2].wire_fingerprint;
  EXPECT_NE(refusal().find("were built with different versions of Sojourn"), std::string::npos);
}

TEST_F(ranks_that_meet, ring_for_their_agent_when_only_those_of_other_hosts_are_missing) {
  segment.ranks_here = 2;
  arrive(segment, [] { has_rung = true; });
  EXPECT_FALSE(has_rung);
  arrive(segment, [] { has_rung = true; });
  EXPECT_TRUE(has_rung);
  EXPECT_EQ(segment.start_arrived.load(), 2u);
}

TEST_F(ranks_that_meet, ring_for_nobody_on_one_host) {
  for (int r = 0; r < ranks; ++r) arrive(segment, [] { has_rung = true; });
  EXPECT_FALSE(has_rung);
}

}  // namespace
