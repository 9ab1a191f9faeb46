// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan/stale_report.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "fiber/switch.hpp"
#include "sojourn/detail/asan.hpp"

namespace {

using namespace sojourn::detail;

// The stacks of fibers hold the addresses of their images in many places.
TEST(stale_report, an_image_of_frames_is_no_object_of_the_program) {
#if SOJOURN_ASAN
  GTEST_SKIP() << "the address sanitizer has an allocator of its own, and reports a look at freed "
                  "memory";
#endif
  std::vector<std::uint64_t> words(80, 1);
  const auto address = reinterpret_cast<std::uint64_t>(words.data());
  EXPECT_TRUE(is_allocated_object(address));
  words[0] = reinterpret_cast<std::uint64_t>(sojourn_switch) + 1;
  EXPECT_FALSE(is_allocated_object(address));
}

}  // namespace
