// SPDX-License-Identifier: Apache-2.0
#include "job/segment_neighbours.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace sojourn::detail;

TEST(segment_neighbours, are_all_ranks_and_tell_what_the_segment_says) {
  const job_fds fds = create_job(3, false, 1, false);
  job_segment& segment = *map_job(fds.segment);
  const segment_neighbours near(segment);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(near.include(rank));
    EXPECT_EQ(&near.counts_of(rank), &segment.counts_of(rank));
    EXPECT_FALSE(near.lost(rank));
  }
  EXPECT_NE(&near.counts_of(0), &near.counts_of(1));

  const std::atomic<std::uint32_t>& losses = near.losses();
  EXPECT_EQ(losses.load(), 0u);
  segment.ranks[1].lost.store(1);
  segment.ranks_lost.fetch_add(1);
  EXPECT_EQ(losses.load(), 1u);
  EXPECT_TRUE(near.lost(1));
  EXPECT_FALSE(near.lost(2));

  EXPECT_FALSE(near.nothing_can_happen()) << "no rank sleeps";

  munmap(&segment, segment.segment_bytes);
  close(fds.segment);
  close(fds.bell);
}

}  // namespace
