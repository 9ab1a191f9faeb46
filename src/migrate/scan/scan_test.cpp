// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan/scan.hpp"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "memory/address_map.hpp"
#include "sojourn/errors.hpp"

namespace {

using sojourn::error;
using sojourn::detail::address_map;
using sojourn::detail::attach_scan;
using sojourn::detail::find_stale_pointer;
using sojourn::detail::private_memory;
using sojourn::detail::private_memory_now;
using sojourn::detail::stale_pointer_finder;
using sojourn::detail::stale_pointer_finders;

template <class T>
std::uint64_t word_of(T* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}
bool is_stale(std::uint64_t word) { return find_stale_pointer(&word, 1) == 0; }

struct scan : testing::Test {
  void SetUp() override { attach_scan(); }
};

TEST_F(scan, private_memory_is_stale) {
  auto small = std::make_unique<std::uint64_t>(1);
  std::vector<char> large(1 << 20);
  int on_this_stack = 0;
  EXPECT_TRUE(is_stale(word_of(small.get())));
  EXPECT_TRUE(is_stale(word_of(large.data()) / 8 * 8));
  EXPECT_TRUE(is_stale(word_of(&on_this_stack) / 8 * 8));
  if (getauxval(AT_BASE) != 0) {  // linked dynamically
    EXPECT_TRUE(is_stale(word_of(::stdout) / 8 * 8)) << "of a shared library";
  }
}

int global_variable = 1;

TEST_F(scan, what_has_one_address_on_every_rank_is_not) {
  EXPECT_FALSE(is_stale(word_of(&global_variable) / 8 * 8));
  EXPECT_FALSE(is_stale(reinterpret_cast<std::uint64_t>(&is_stale) / 8 * 8));
  EXPECT_FALSE(is_stale(address_map::default_base)) << "the region";
  EXPECT_FALSE(is_stale(address_map::default_base + address_map::default_bytes - 8));
}

TEST_F(scan, numbers_are_not) {
  for (std::uint64_t number : std::initializer_list<std::uint64_t>{
           0, 1, 8, 4096, 1'000'000, ~std::uint64_t{0}, ~std::uint64_t{7}, std::uint64_t{1} << 47,
           std::uint64_t{1} << 63, 0xffff'8000'0000'0000}) {
    EXPECT_FALSE(is_stale(number)) << number;
  }
  for (double number : {1.0, -1.0, 3.14159, 1e300, 1e-300}) {
    EXPECT_FALSE(is_stale(__builtin_bit_cast(std::uint64_t, number))) << number;
  }
  auto object = std::make_unique<std::uint64_t>(1);
  for (std::uint64_t i = 1; i < 8; ++i) {
    EXPECT_FALSE(is_stale(word_of(object.get()) + i)) << "aligned as no object is";
  }
}

/// What the scan looks for, one word after the other.
std::size_t first_stale(const std::vector<std::uint64_t>& words, const private_memory& m) {
  const auto found = std::find_if(words.begin(), words.end(), [&m](std::uint64_t w) {
    const bool in_heap = w >= m.heap_low && w < m.heap_high;
    const bool at_top = w >= m.top_low && w < m.top_high;
    return w % 8 == 0 && (in_heap || at_top);
  });
  return static_cast<std::size_t>(found - words.begin());
}

/// Words such as lie in frames, and some at the limits of private memory.
std::uint64_t random_word(std::mt19937_64& random, const private_memory& m) {
  const std::array limits{m.heap_low, m.heap_high, m.top_low, m.top_high};
  switch (random() % 8) {
    case 0:
    case 1:
      return limits[random() % limits.size()] - 16 + random() % 33;
    case 2:
      return limits[random() % limits.size()] - 16 + random() % 5 * 8;
    case 3:
      return random() >> random() % 64;
    case 4:
      return address_map::default_base + random() % address_map::default_bytes / 8 * 8;
    case 5:
      return m.heap_low + random() % (m.heap_high - m.heap_low + 1);
    case 6:
      return m.top_low + random() % (m.top_high - m.top_low + 1);
    default:
      return word_of(&global_variable);
  }
}

TEST_F(scan, uses_the_fastest_finder_of_this_processor) {
  const auto finders = stale_pointer_finders();
  ASSERT_FALSE(finders.empty());
  EXPECT_STREQ(finders.back().instructions, "plain") << "which every processor has";
#if defined(__x86_64__)
  EXPECT_EQ(finders.size(), __builtin_cpu_supports("avx512f") ? 3u
                            : __builtin_cpu_supports("avx2")  ? 2u
                                                              : 1u);
#endif
}

TEST_F(scan, finds_the_first_of_many_whatever_the_processor) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint64_t> words(random() % 70);
    // Hardly any or many of them suspect.
    const std::uint64_t usual = random() % 2 == 0 ? 40 : 2;
    const private_memory m = private_memory_now();
    for (auto& w : words) w = random() % usual == 0 ? random_word(random, m) : random() % 100;
    const std::size_t expected = first_stale(words, m);
    ASSERT_EQ(find_stale_pointer(words.data(), words.size()), expected) << "round " << round;
    for (const stale_pointer_finder& by : stale_pointer_finders()) {
      ASSERT_EQ(by.find(words.data(), words.size()), expected)
          << by.instructions << ", round " << round;
    }
  }
}

TEST_F(scan, finds_addresses_where_the_heap_has_grown) {
  const std::uint64_t behind = (private_memory_now().heap_high + 7) / 8 * 8;
  ASSERT_NE(sbrk(4096), reinterpret_cast<void*>(-1));
  std::array<std::uint64_t, 12> words{};
  words.back() = behind;
  EXPECT_EQ(find_stale_pointer(words.data(), words.size()), words.size() - 1);
  for (const stale_pointer_finder& by : stale_pointer_finders()) {
    EXPECT_EQ(by.find(words.data(), words.size()), words.size() - 1) << by.instructions;
  }
}

TEST_F(scan, finds_one_at_every_index_and_reads_no_further) {
  // The words end at the end of a page; the next page cannot be read.
  auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* two = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(two, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(two) + page, page, PROT_NONE), 0);
  auto* end = reinterpret_cast<std::uint64_t*>(static_cast<char*>(two) + page);
  auto object = std::make_unique<std::uint64_t>(1);
  ASSERT_TRUE(is_stale(word_of(object.get())));  // and the finders know where the heap ends
  for (const stale_pointer_finder& by : stale_pointer_finders()) {
    SCOPED_TRACE(by.instructions);
    for (std::size_t count = 0; count <= 40; ++count) {
      std::uint64_t* words = end - count;
      EXPECT_EQ(by.find(words, count), count);
      for (std::size_t i = 0; i < count; ++i) {
        words[i] = word_of(object.get());
        if (i + 1 < count) words[count - 1] = word_of(object.get());
        EXPECT_EQ(by.find(words, count), i) << "of " << count;
        words[i] = words[count - 1] = 0;
      }
    }
  }
  munmap(two, 2 * page);
}

TEST(scan_setting, is_on_or_off_and_nothing_else) {
  for (const char* good : {"on", "off"}) {
    setenv("SOJOURN_SCAN", good, 1);
    EXPECT_NO_THROW(attach_scan());
  }
  for (const char* bad : {"", "yes", "ON", "of"}) {
    setenv("SOJOURN_SCAN", bad, 1);
    EXPECT_THROW(attach_scan(), error) << bad;
  }
  unsetenv("SOJOURN_SCAN");
}

}  // namespace
