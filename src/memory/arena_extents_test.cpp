// SPDX-License-Identifier: Apache-2.0
#include "memory/arena_extents.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <random>

#include "memory/region_test.hpp"

namespace {

using namespace sojourn::detail;

TEST(arena_extents, random_ones_are_apart_and_merge_again) {
  auto claims = [] {
    map_as(1, 1 * gib, 8);
    std::mt19937 random(1);
    std::map<std::uint64_t, std::uint64_t> held;
    for (int i = 0; i < 20000; ++i) {
      if (random() % 2 == 0) {
        std::uint64_t bytes = (1 + random() % (random() % 30 + 1)) * arena_extents::granule_bytes;
        std::uint64_t at = extents.take(bytes);
        if (at == 0) continue;
        CLAIM(extents.is_home(at) && addresses.arenas_home(at + bytes - 1) == 1);
        auto after = held.lower_bound(at);
        CLAIM(after == held.end() || at + bytes <= after->first);
        CLAIM(after == held.begin() || std::prev(after)->first + std::prev(after)->second <= at);
        held.emplace(at, bytes);
      } else if (!held.empty()) {
        auto some = std::next(held.begin(), static_cast<long>(random() % held.size()));
        extents.retire(some->first, some->second, 0);
        extents.give_back(some->first, some->second);
        held.erase(some);
      }
    }
    for (auto [at, bytes] : held) {
      extents.retire(at, bytes, 0);
      extents.give_back(at, bytes);
    }
    CLAIM(extents.bytes_taken() == 0);
    CLAIM(extents.take(16 * mib) != 0);
  };
  EXPECT_CLAIMS(claims);
}

TEST(arena_extents, one_given_back_twice_or_in_use_or_of_another_rank_ends_the_rank) {
  auto twice = [] {
    map_as(0);
    std::uint64_t at = extents.take(100000);
    extents.take(100000);
    extents.retire(at, 100000, 0);
    extents.give_back(at, 100000);
    extents.give_back(at, 100000);
  };
  EXPECT_DEATH(twice(), "given back twice");
  auto in_use = [] {
    map_as(0);
    std::uint64_t at = extents.take(100000);
    extents.give_back(at, 100000);
  };
  EXPECT_DEATH(in_use(), "given back while it is in use");
  auto foreign = [] {
    map_as(0);
    std::uint64_t at = extents.take(100000);
    extents.give_back(at + (std::uint64_t{1} << addresses.arenas_shift), 100000);
  };
  EXPECT_DEATH(foreign(), "are not an extent of rank 0");
}

}  // namespace
