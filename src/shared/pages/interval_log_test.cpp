// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/interval_log.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory_resource>

namespace sojourn::detail::pages {
namespace {

constexpr interval last = std::numeric_limits<interval>::max();

TEST(interval_log, the_last_intervals_are_found_like_any_others) {
  auto* memory = std::pmr::new_delete_resource();
  interval_log log(1, 2, 16, memory, last - 2);
  interval_pages stored(memory);
  stored.ranges.push_back({3, 2, false});
  EXPECT_EQ(log.close(stored).index, last - 1);
  EXPECT_EQ(log.close(stored).index, last);
  EXPECT_EQ(log.mine(), last);
  EXPECT_EQ(log.find(1, last - 1).index, last - 1);
  EXPECT_EQ(log.find(1, last).clock(2)[1], last);
  log.collect(log.known());
  EXPECT_EQ(log.bytes(), 0u);
}

TEST(interval_log_DeathTest, numbers_that_have_run_out_end_the_rank) {
  auto* memory = std::pmr::new_delete_resource();
  interval_log log(0, 2, 16, memory, last);
  EXPECT_DEATH(log.close(interval_pages(memory)),
               "rank 0 has released what it stored to shared memory 4294967295 times");
}

}  // namespace
}  // namespace sojourn::detail::pages
