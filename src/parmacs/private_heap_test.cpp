// SPDX-License-Identifier: Apache-2.0
#include "parmacs/private_heap.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "memory/region_test.hpp"

namespace sojourn::detail {
namespace {

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

/// The heap of one rank of four.
struct heap_of_rank : private_heap {
  explicit heap_of_rank(int rank) {
    if (addresses.unit == 0) map_as(0, 64 * gib, 4);
    // What an earlier test has left.
    madvise(reinterpret_cast<void*>(addresses.program_heap()), addresses.program_heap_bytes(),
            MADV_DONTNEED);
    attach(rank, 4);
  }
};

struct block {
  unsigned char* at;
  std::size_t bytes;
  unsigned char filled;
};

bool is_filled(const block& b) {
  return std::all_of(b.at, b.at + b.bytes, [&](unsigned char c) { return c == b.filled; });
}

TEST(private_heap, blocks_do_not_overlap_whatever_is_freed) {
  heap_of_rank heap(0);
  std::mt19937 random(7);
  std::vector<block> all;
  for (int i = 0; i < 20000; ++i) {
    if (all.size() < 100 || random() % 2 == 0) {
      const std::size_t bytes = random() % 50 == 0 ? random() % 3'000'000 : random() % 2000;
      const std::size_t align = random() % 10 == 0 ? std::size_t{16} << random() % 9 : 16;
      const bool zeroed = random() % 3 == 0;
      block b{static_cast<unsigned char*>(heap.allocate(bytes, align, zeroed)), bytes,
              static_cast<unsigned char>(random())};
      ASSERT_NE(b.at, nullptr);
      ASSERT_EQ(address_of(b.at) % align, 0u);
      ASSERT_GE(heap.bytes_of(b.at), bytes);
      if (zeroed) {
        ASSERT_TRUE(is_filled({b.at, bytes, 0})) << bytes << " bytes are not zero";
      }
      std::memset(b.at, b.filled, bytes);
      all.push_back(b);
    } else {
      const std::size_t k = random() % all.size();
      ASSERT_TRUE(is_filled(all[k])) << "a block of " << all[k].bytes << " bytes was overwritten";
      heap.free(all[k].at);
      all[k] = all.back();
      all.pop_back();
    }
  }
}

TEST(private_heap, what_is_allocated_after_sealing_lies_beyond_what_was_sealed) {
  heap_of_rank heap(1);
  void* before = heap.allocate(100, 16, false);
  void* freed = heap.allocate(100, 16, false);
  const private_heap::range r = heap.seal();
  EXPECT_LE(r.low, address_of(before));
  EXPECT_GE(r.high, address_of(freed) + 100);
  EXPECT_EQ(r.high % 4096, 0u);
  heap.free(freed);
  EXPECT_GE(address_of(heap.allocate(100, 16, false)), r.high);
  heap.unseal();
  EXPECT_EQ(heap.allocate(100, 16, false), freed);
}

TEST(private_heap, what_is_kept_at_a_reset_is_zero_and_not_dealt_out) {
  heap_of_rank heap(2);
  std::memset(heap.allocate(10'000, 16, false), 7, 10'000);
  const private_heap::range kept = heap.seal();
  heap.allocate(3'000'000, 16, false);
  heap.reset(kept);
  for (std::uint64_t at = kept.low; at < kept.high; ++at)
    ASSERT_EQ(*reinterpret_cast<char*>(at), 0);
  EXPECT_GE(address_of(heap.allocate(10'000, 16, false)), kept.high);
  EXPECT_GE(heap.seal().high, kept.high);
  EXPECT_EQ(heap.seal().low, kept.low);
  heap.reset({});
  EXPECT_LT(address_of(heap.allocate(10'000, 16, false)), kept.high);
}

TEST(private_heap, a_copy_of_another_part_is_zero_when_it_is_opened_again) {
  heap_of_rank heap(2);
  const std::uint64_t low = addresses.program_heap();
  heap.open_copy({low, low + 8192});
  std::memset(reinterpret_cast<void*>(low), 7, 8192);
  heap.close_copy({low, low + 8192});
  heap.open_copy({low, low + 4096});
  EXPECT_EQ(*reinterpret_cast<char*>(low), 0);
  heap.close_copy({low, low + 4096});
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(low) = 1, "");
}

TEST(private_heap, each_rank_allocates_from_a_part_of_its_own) {
  for (int rank = 0; rank < 4; ++rank) {
    heap_of_rank heap(rank);
    void* p = heap.allocate(1, 16, false);
    EXPECT_EQ(heap.rank_of(address_of(p)), rank);
    EXPECT_TRUE(heap.contains(address_of(p)));
  }
}

TEST(private_heap, a_request_that_cannot_be_met_is_refused) {
  heap_of_rank heap(0);
  EXPECT_EQ(heap.allocate(~std::size_t{0} - 8, 16, false), nullptr);
  EXPECT_EQ(heap.allocate(std::size_t{1} << 62, 4096, true), nullptr);
  EXPECT_NE(heap.allocate(0, 16, false), heap.allocate(0, 16, false));
}

TEST(private_heap_death, what_was_freed_or_never_allocated_cannot_be_freed) {
  heap_of_rank heap(0);
  auto* p = static_cast<char*>(heap.allocate(100, 16, false));
  EXPECT_DEATH(heap.free(p + 16), "no block from malloc\\(\\) begins");
  EXPECT_DEATH(heap.free(p + 3), "no block from malloc\\(\\) begins");
  heap.free(p);
  EXPECT_DEATH(heap.free(p), "or one that was freed");
}

}  // namespace
}  // namespace sojourn::detail
