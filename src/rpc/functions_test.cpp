// SPDX-License-Identifier: Apache-2.0
#include "rpc/functions.hpp"

#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "sojourn/detail/running.hpp"
#include "sojourn/detail/wire.hpp"
#include "sojourn/errors.hpp"

namespace {

using namespace sojourn::detail;

class functions : public testing::Test {
 protected:
  void SetUp() override { attach_functions(); }
};

template <int N>
[[gnu::noinline]] int numbered() {
  static volatile int n = N;
  return n;
}
using function = void (*)();
template <int N>
function pointer_to() {
  return reinterpret_cast<function>(&numbered<N>);
}

TEST_F(functions, each_is_found_by_its_index) {
  std::set<std::uint32_t> indices;
  for (const function f : {pointer_to<1>(), pointer_to<2>(), pointer_to<3>(), pointer_to<4>()}) {
    const std::uint32_t index = function_index(f);
    EXPECT_EQ(function_index(f), index);
    EXPECT_EQ(function_at(index), f);
    indices.insert(index);
  }
  EXPECT_EQ(indices.size(), 4U);
}

TEST_F(functions, those_of_libraries_and_addresses_of_no_function_have_none) {
  EXPECT_THROW((void)function_index(nullptr), sojourn::error);
  EXPECT_THROW((void)function_index(reinterpret_cast<function>(&gnu_get_libc_version)),
               sojourn::error);
  const auto inside = reinterpret_cast<std::uintptr_t>(pointer_to<1>()) + 1;
  EXPECT_THROW((void)function_index(reinterpret_cast<function>(inside)), sojourn::error);
}

TEST_F(functions, an_index_beyond_the_table_is_refused) {
  EXPECT_THROW((void)function_at(~0U), sojourn::error);
}

}  // namespace
