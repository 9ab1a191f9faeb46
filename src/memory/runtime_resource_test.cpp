// SPDX-License-Identifier: Apache-2.0
#include "memory/runtime_resource.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace sojourn::detail {
namespace {

TEST(runtime_resource, long_blocks_that_were_freed_are_used_again) {
  std::set<void*> addresses;
  for (int round = 0; round < 200; ++round) {
    const std::size_t bytes = (std::size_t{5} << 20) + static_cast<std::size_t>(round);
    void* const block = runtime_resource()->allocate(bytes, 64);
    addresses.insert(block);
    std::memset(block, round, 64);
    runtime_resource()->deallocate(block, bytes, 64);
  }
  // 5 MiB are one step exactly, and all others need the next.
  EXPECT_LE(addresses.size(), 2u);
}

TEST(runtime_resource, blocks_of_all_sizes_are_aligned_as_asked) {
  std::pmr::memory_resource* const from = runtime_resource();
  for (std::size_t align = 1; align <= 4096; align *= 2) {
    for (std::size_t bytes = 1; bytes < 600; bytes += 7) {
      void* const blocks[] = {from->allocate(bytes, align), from->allocate(bytes, align)};
      for (void* block : blocks) {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % align, 0u)
            << bytes << " bytes, aligned to " << align;
        from->deallocate(block, bytes, align);
      }
    }
  }
}

TEST(runtime_resource, a_vector_that_grows_long_again_and_again_takes_no_new_memory) {
  std::set<const void*> addresses;
  for (int round = 0; round < 8; ++round) {
    std::pmr::vector<std::byte> bytes(runtime_resource());
    while (bytes.size() < (std::size_t{40} << 20)) bytes.resize(bytes.size() + (1u << 20));
    addresses.insert(bytes.data());
  }
  EXPECT_EQ(addresses.size(), 1u);
}

TEST(runtime_resource, steps_waste_at_most_an_eighth) {
  for (std::size_t bytes = 4096; bytes < (std::size_t{1} << 26); bytes += bytes / 7 + 1) {
    EXPECT_GE(long_blocks::whole(bytes), bytes);
    EXPECT_LE(long_blocks::whole(bytes), bytes + bytes / 8);
    EXPECT_EQ(long_blocks::whole(long_blocks::whole(bytes)), long_blocks::whole(bytes));
  }
}

}  // namespace
}  // namespace sojourn::detail
