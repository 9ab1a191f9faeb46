// SPDX-License-Identifier: Apache-2.0
#include "site/pmix_types.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#if __has_include(<pmix_common.h>)
#include <pmix_common.h>
#endif

namespace sojourn::detail::pmix {
namespace {

#ifdef PMIX_MAX_NSLEN
static_assert(sizeof(proc) == sizeof(pmix_proc_t));
static_assert(offsetof(proc, number) == offsetof(pmix_proc_t, rank));
static_assert(sizeof(value) == sizeof(pmix_value_t));
static_assert(offsetof(value, data) == offsetof(pmix_value_t, data));
static_assert(sizeof(info) == sizeof(pmix_info_t));
static_assert(offsetof(info, flags) == offsetof(pmix_info_t, flags));
static_assert(offsetof(info, content) == offsetof(pmix_info_t, value));
static_assert(type_bool == PMIX_BOOL && type_string == PMIX_STRING && type_uint32 == PMIX_UINT32);
static_assert(every_rank == (PMIX_RANK_WILDCARD) && scope_global == PMIX_GLOBAL);
#endif

TEST(pmix, has_the_sizes_of_its_standard) {
  EXPECT_EQ(sizeof(proc), 260u);
  EXPECT_EQ(sizeof(value), 32u);
  EXPECT_EQ(sizeof(info), 552u);
}

}  // namespace
}  // namespace sojourn::detail::pmix
