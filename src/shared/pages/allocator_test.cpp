// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/allocator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {
namespace {

constexpr std::uint64_t base = std::uint64_t{1} << 40;

allocator part_of(std::uint64_t bytes) { return {base, bytes, std::pmr::new_delete_resource()}; }

/// Addresses line by line: what nobody has, what somebody has had, and what is dealt out.
class model {
 public:
  explicit model(std::uint64_t bytes) : lines_(bytes / 64) {}

  void dealt_out(allocator::block b, std::uint64_t bytes) {
    bool used_before = false;
    for (std::uint64_t i = line(b.at); i < line(b.at) + lines(bytes); ++i) {
      ASSERT_LT(i, lines_.size());
      ASSERT_NE(lines_[i], dealt) << "line " << i << " is dealt out twice";
      used_before |= lines_[i] == returned;
      lines_[i] = dealt;
    }
    ASSERT_TRUE(b.used_before || !used_before) << "memory that is not zero is called new";
  }
  void freed(std::uint64_t at, std::uint64_t bytes) {
    for (std::uint64_t i = line(at); i < line(at) + lines(bytes); ++i) lines_[i] = returned;
  }
  /// Whether so many bytes that begin on a multiple of `unit` are not dealt out.
  bool has_room(std::uint64_t bytes, std::uint64_t unit) const {
    const std::uint64_t step = unit / 64;
    for (std::uint64_t i = 0; i + lines(bytes) <= lines_.size(); i += step) {
      std::uint64_t k = 0;
      while (k < lines(bytes) && lines_[i + k] != dealt) ++k;
      if (k == lines(bytes)) return true;
    }
    return false;
  }

 private:
  enum state : char { fresh, returned, dealt };

  static std::uint64_t line(std::uint64_t at) { return (at - base) / 64; }
  static std::uint64_t lines(std::uint64_t bytes) { return (bytes + 63) / 64; }

  std::vector<state> lines_;
};

TEST(shared_allocator, what_is_dealt_out_is_aligned_and_nobody_elses_and_no_room_is_overlooked) {
  const char* set = std::getenv("SOJOURN_TEST_SEED");
  const std::uint64_t seed =
      set != nullptr ? std::strtoull(set, nullptr, 10) : std::random_device()();
  SCOPED_TRACE(testing::Message() << "SOJOURN_TEST_SEED=" << seed << " replays it");
  std::mt19937_64 random(seed);
  constexpr std::uint64_t bytes = 64 * page_bytes;
  for (int round = 0; round < 20; ++round) {
    allocator of = part_of(bytes);
    model known(bytes);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
    std::uint64_t all = 0;
    for (int step = 0; step < 3000; ++step) {
      if (!held.empty() && random() % 100 < (step % 1000 < 500 ? 35 : 60)) {
        const std::size_t which = random() % held.size();
        ASSERT_TRUE(of.free(held[which].first));
        known.freed(held[which].first, held[which].second);
        all -= held[which].second;
        ASSERT_FALSE(of.free(held[which].first));
        held[which] = held.back();
        held.pop_back();
      } else {
        const bool is_long = random() % 4 == 0;
        const std::uint64_t wanted = 1 + random() % (is_long ? 5 * page_bytes : 600);
        const std::uint64_t align = random() % 8 == 0 ? std::uint64_t{1} << random() % 15 : 16;
        const std::uint64_t unit = wanted >= page_bytes ? page_bytes : 64;
        const std::uint64_t size = (wanted + unit - 1) / unit * unit;
        const allocator::block b = of.allocate(wanted, align);
        if (b.at == 0) {
          // With the usual alignment, memory is only refused where there is none.
          ASSERT_FALSE(align <= unit && known.has_room(size, unit));
          continue;
        }
        ASSERT_EQ(b.at % std::max(align, unit), 0u);
        ASSERT_NO_FATAL_FAILURE(known.dealt_out(b, size));
        held.emplace_back(b.at, size);
        all += size;
      }
      ASSERT_EQ(of.allocated_bytes(), all);
    }
    for (const auto& [at, size] : held) ASSERT_TRUE(of.free(at));
    ASSERT_EQ(of.allocated_bytes(), 0u);
  }
}

TEST(shared_allocator, what_is_free_again_is_one_block) {
  allocator of = part_of(100 * page_bytes);
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 100; ++i) all.push_back(of.allocate(page_bytes, 1).at);
  EXPECT_EQ(of.allocate(64, 1).at, 0u);
  EXPECT_EQ(of.longest_free(), 0u);
  for (std::size_t i = 0; i < all.size(); i += 2) EXPECT_TRUE(of.free(all[i]));
  EXPECT_EQ(of.longest_free(), page_bytes);
  EXPECT_EQ(of.allocate(2 * page_bytes, 1).at, 0u);
  for (std::size_t i = 1; i < all.size(); i += 2) EXPECT_TRUE(of.free(all[i]));
  const allocator::block b = of.allocate(100 * page_bytes, 1);
  EXPECT_EQ(b.at, base);
  EXPECT_TRUE(b.used_before);
}

TEST(shared_allocator, a_hole_of_whole_pages_is_used_again_among_lines) {
  allocator of = part_of(8 * page_bytes);
  (void)of.allocate(64, 1);
  const std::uint64_t page = of.allocate(page_bytes, 1).at;
  (void)of.allocate(6 * page_bytes, 1);
  EXPECT_TRUE(of.free(page));
  EXPECT_EQ(of.allocate(page_bytes, 1).at, page);
}

TEST(shared_allocator, many_holes_cost_no_search) {
  // Takes minutes if each allocation searches all free blocks.
  constexpr std::uint64_t count = 200'000;
  allocator of = part_of(2 * count * page_bytes);
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(of.allocate(page_bytes, 1).at);
  for (std::size_t i = 0; i < all.size(); i += 2) EXPECT_TRUE(of.free(all[i]));
  for (std::uint64_t i = 0; i < count; ++i) EXPECT_TRUE(of.free(of.allocate(2 * page_bytes, 1).at));
}

TEST(shared_allocator, a_block_longer_than_all_is_refused) {
  allocator of = part_of(4 * page_bytes);
  EXPECT_EQ(of.allocate(4 * page_bytes + 1, 1).at, 0u);
  EXPECT_EQ(of.allocate(~std::uint64_t{0}, 1).at, 0u);
  EXPECT_EQ(of.allocate(64, std::uint64_t{1} << 62).at, 0u);
  EXPECT_EQ(of.allocate(4 * page_bytes, 1).at, base);
}

}  // namespace
}  // namespace sojourn::detail::pages
