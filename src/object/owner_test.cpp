// SPDX-License-Identifier: Apache-2.0
// Accesses of a program that has not called run(): this process is no rank yet.
#include "sojourn/detail/owner.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "sojourn/errors.hpp"
#include "sojourn/global_ptr.hpp"

namespace {

using namespace sojourn;

struct object {
  int get() const { return value; }
  int value = 0;
};

TEST(owner, before_the_job_no_rank_owns_anything) {
  for (const std::uint64_t address :
       {std::uint64_t{0}, std::uint64_t{64}, ~std::uint64_t{0} >> 17}) {
    const auto p = global_ptr<object>::at(address);
    EXPECT_EQ(p.where(), -1) << address;
    EXPECT_FALSE(p.is_local()) << address;
    EXPECT_THROW(p.call<&object::get>(), error) << address;
    EXPECT_THROW(p.call<&object::get>(via::migrate), error) << address;
    EXPECT_THROW((void)p.async<&object::get>(), error) << address;
  }
}

}  // namespace
