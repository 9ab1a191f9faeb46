// SPDX-License-Identifier: Apache-2.0
#include "launcher/binding.hpp"

#include <gtest/gtest.h>

#include "job/cores.hpp"

namespace {

using namespace sojourn::detail;
using cores = std::vector<int>;

TEST(binding, reads_lists_of_cores) {
  EXPECT_EQ(parse_core_list("0"), (cores{0}));
  EXPECT_EQ(parse_core_list("0-2,8"), (cores{0, 1, 2, 8}));
  EXPECT_EQ(parse_core_list("3,7"), (cores{3, 7}));
  EXPECT_EQ(parse_core_list(""), cores{});
  for (const char* bad : {"x", "1-", "-1", "3-1", "0-99999999", "1,,2", "99999999999999999999"}) {
    EXPECT_EQ(parse_core_list(bad), cores{}) << bad;
  }
}

TEST(binding, takes_one_thread_of_each_physical_core_first) {
  auto pairs_apart = +[](int core) { return cores{core % 4, core % 4 + 4}; };
  EXPECT_EQ(binding_order({0, 1, 2, 3, 4, 5, 6, 7}, pairs_apart), (cores{0, 1, 2, 3, 4, 5, 6, 7}));
  auto pairs_adjacent = +[](int core) { return cores{core / 2 * 2, core / 2 * 2 + 1}; };
  EXPECT_EQ(binding_order({0, 1, 2, 3, 4, 5}, pairs_adjacent), (cores{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(binding_order({1, 2, 3}, pairs_adjacent), (cores{1, 2, 3}));
  auto unknown = +[](int core) { return cores{core}; };
  EXPECT_EQ(binding_order({5, 9}, unknown), (cores{5, 9}));
}

TEST(binding, this_host_tells_of_its_cores) {
  for (int core : affinity_cores()) EXPECT_FALSE(hardware_threads_beside(core).empty());
}

}  // namespace
