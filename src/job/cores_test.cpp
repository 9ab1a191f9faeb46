// SPDX-License-Identifier: Apache-2.0
#include "job/cores.hpp"

#include <gtest/gtest.h>

#include <climits>

namespace {

using namespace sojourn::detail;

TEST(cores, reads_quotas) {
  EXPECT_EQ(cores_of_quota("max 100000"), INT_MAX);
  EXPECT_EQ(cores_of_quota("200000 100000"), 2);
  EXPECT_EQ(cores_of_quota("150000 100000"), 2);
  EXPECT_EQ(cores_of_quota("1000 100000"), 1);
  for (const char* bad : {"", "100000", "1 0", "0 1", "-5 100000", "a b", "1 2 3"}) {
    EXPECT_EQ(cores_of_quota(bad), INT_MAX) << bad;
  }
}

TEST(cores, this_host_has_one) {
  EXPECT_FALSE(affinity_cores().empty());
  EXPECT_GE(quota_cores(), 1);
}

}  // namespace
