// SPDX-License-Identifier: Apache-2.0
// For tests that map a region of their own. They check their claims in a child process, which exits
// with the line of the first claim that does not hold.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "memory/address_map.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

inline constexpr std::uint64_t mib = std::uint64_t{1} << 20;
inline constexpr std::uint64_t gib = std::uint64_t{1} << 30;
/// Where the region begins.
inline constexpr std::uint64_t base = 0x3200'0000'0000;

#define CLAIM(condition)                                           \
  do {                                                             \
    if (!(condition)) {                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      _exit(1);                                                    \
    }                                                              \
  } while (false)

#define EXPECT_CLAIMS(function) \
  EXPECT_EXIT(                  \
      {                         \
        function();             \
        _exit(0);               \
      },                        \
      testing::ExitedWithCode(0), "")

/// Makes this process that rank.
inline void map_as(int rank, std::uint64_t region_bytes = 1 * gib, int ranks = 2) {
  job.me = rank;
  job.count = ranks;
  map_region(address_map::divide(base, region_bytes, ranks, 256 << 10), rank, -1);
}

}  // namespace sojourn::detail
