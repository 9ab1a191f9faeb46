// SPDX-License-Identifier: Apache-2.0
#include "transport/neighbours.hpp"

#include <gtest/gtest.h>

namespace {

using namespace sojourn::detail;

struct some_neighbours final : neighbours {
  bool include(int) const override { return true; }
  counts_page& counts_of(int) const override { return counts; }
  const std::atomic<std::uint32_t>& losses() const override { return none; }
  bool lost(int) const override { return false; }
  bool nothing_can_happen() const override { return false; }
  bool interrupt(int) const override { return false; }
  std::atomic<std::uint32_t> none{0};
};

TEST(neighbours, are_those_that_were_attached_last) {
  static const some_neighbours first, second;  // they live as long as the process
  attach_neighbours(first);
  EXPECT_EQ(&near_ranks(), &first);
  attach_neighbours(second);
  EXPECT_EQ(&near_ranks(), &second);
}

}  // namespace
