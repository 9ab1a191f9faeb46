// SPDX-License-Identifier: Apache-2.0
#include "job/segment_neighbours.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/shm/layout.hpp"

namespace {

using namespace sojourn::detail;

constexpr int ranks = 3;

struct segment_neighbours_of_a_job : testing::Test {
  ~segment_neighbours_of_a_job() override {
    munmap(&segment, segment.segment_bytes);
    close(fds.segment);
    close(fds.bell);
  }

  const job_fds fds = create_job({.ranks = ranks, .share_heap = false});
  job_segment& segment = *map_job(fds.segment);
  const segment_neighbours near{segment};
};

TEST_F(segment_neighbours_of_a_job, are_all_ranks) {
  for (int rank = 0; rank < ranks; ++rank) EXPECT_TRUE(near.include(rank));
}

TEST_F(segment_neighbours_of_a_job, count_in_pages_of_their_own) {
  const auto address_of = [](const auto& x) { return reinterpret_cast<std::uintptr_t>(&x); };
  const std::uintptr_t first = address_of(segment.ranks[ranks - 1]) + sizeof(rank_block);
  const std::uintptr_t end = address_of(segment.watch().all());
  for (int rank = 0; rank < ranks; ++rank) {
    near.counts_of(rank).forks = static_cast<std::uint64_t>(rank + 1);
    const std::uintptr_t page = address_of(near.counts_of(rank));
    EXPECT_GE(page, first) << "behind what the segment tells of the ranks";
    EXPECT_LE(page + sizeof(counts_page), end) << "before what they tell of their waits";
    EXPECT_EQ(page, address_of(segment) + job_segment::counts_offset(rank, ranks))
        << "where the rank maps it";
  }
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(near.counts_of(rank).forks, static_cast<std::uint64_t>(rank + 1));
  }
}

TEST_F(segment_neighbours_of_a_job, tell_which_were_lost_and_how_many) {
  const std::atomic<std::uint32_t>& losses = near.losses();
  EXPECT_EQ(losses.load(), 0u);
  for (const int lost : {1, 0, 2}) {
    EXPECT_FALSE(near.lost(lost));
    segment.ranks[lost].lost.store(1);
    EXPECT_TRUE(near.lost(lost));
    segment.ranks[lost].lost.store(0);
  }
  segment.ranks[1].lost.store(1);
  EXPECT_FALSE(near.lost(0) || near.lost(2));
  segment.ranks_lost.store(7);
  EXPECT_EQ(losses.load(), 7u) << "at the same place as before";
}

TEST_F(segment_neighbours_of_a_job, know_when_nothing_can_happen) {
  auto* const lines =
      shm::layout::wake_lines(reinterpret_cast<std::byte*>(&segment) + segment.transport_offset);
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_FALSE(near.nothing_can_happen()) << "rank " << rank << " does not sleep";
    segment.watch().of(rank).epoch.store(1);
    lines[rank].asleep.store(1);
  }
  EXPECT_TRUE(near.nothing_can_happen());
}

}  // namespace
