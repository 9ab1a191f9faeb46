// SPDX-License-Identifier: Apache-2.0
// The memory of long blocks (detail/marshalled.hpp).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "memory/region_test.hpp"
#include "sojourn/detail/asan.hpp"
#include "sojourn/detail/marshalled.hpp"

namespace {

using namespace sojourn::detail;

/// Makes a block and gives it back; returns where it lay.
const std::byte* used_once(std::size_t bytes) { return pooled_block(bytes).get(); }

void long_blocks_are_used_again() {
  const std::byte* const before = used_once(1 * mib);
  const pooled_block again(1 * mib);
  CLAIM(again.get() == before);
  // It is in use now.
  const pooled_block other(1 * mib);
  CLAIM(other.get() != before);
}
TEST(block_pool, a_long_block_that_was_given_back_is_used_again) {
  EXPECT_CLAIMS(long_blocks_are_used_again);
}

void the_best_is_taken() {
  std::optional<pooled_block> small(512 * 1024), middle(768 * 1024), large(1 * mib);
  const std::byte* const at_small = small->get();
  const std::byte* const at_middle = middle->get();
  const std::byte* const at_large = large->get();
  large.reset();
  middle.reset();
  small.reset();
  const pooled_block a(600 * 1024);
  CLAIM(a.get() == at_middle);
  const pooled_block b(600 * 1024);
  CLAIM(b.get() == at_large);
  const pooled_block c(300 * 1024);
  CLAIM(c.get() == at_small);
}
TEST(block_pool, the_smallest_free_block_that_is_long_enough_is_taken) {
  EXPECT_CLAIMS(the_best_is_taken);
}

void little_is_wasted() {
  const std::byte* const before = used_once(3 * mib);
  const pooled_block much_shorter(1 * mib);
  CLAIM(much_shorter.get() != before);
  const pooled_block about_half(3 * mib / 2);
  CLAIM(about_half.get() == before);
}
TEST(block_pool, a_block_of_more_than_twice_the_length_stays_free) {
  EXPECT_CLAIMS(little_is_wasted);
}

void are_aligned() {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{300'000}, 3 * mib}) {
    CLAIM(reinterpret_cast<std::uintptr_t>(pooled_block(bytes).get()) % 16 == 0);
  }
  CLAIM(reinterpret_cast<std::uintptr_t>(pooled_block(5 * mib).get()) % (2 * mib) == 0);
}
TEST(block_pool, blocks_are_aligned_and_those_of_some_mib_lie_in_large_pages) {
  EXPECT_CLAIMS(are_aligned);
}

bool is_mapped(const std::byte* memory) {
  unsigned char page;
  return mincore(const_cast<std::byte*>(memory), 1, &page) == 0 || errno != ENOMEM;
}
void keeps_not_too_much() {
  std::optional<pooled_block> a(200 * mib), b(200 * mib);
  const std::byte* const at_a = a->get();
  const std::byte* const at_b = b->get();
  a.reset();
  b.reset();
  CLAIM(is_mapped(at_a));
  CLAIM(!is_mapped(at_b));
}
TEST(block_pool, at_most_256_mib_stay_with_the_rank) {
#if SOJOURN_ASAN
  GTEST_SKIP() << "the sanitizer keeps freed memory";
#endif
  EXPECT_CLAIMS(keeps_not_too_much);
}

void moved_blocks_are_given_back_once() {
  const std::byte* before;
  {
    pooled_block first(1 * mib);
    before = first.get();
    const pooled_block second(std::move(first));
    CLAIM(second.get() == before);
  }
  const pooled_block again(1 * mib), other(1 * mib);
  CLAIM(again.get() == before);
  CLAIM(other.get() != before);
}
TEST(block_pool, a_block_that_was_moved_is_given_back_once) {
  EXPECT_CLAIMS(moved_blocks_are_given_back_once);
}

}  // namespace
