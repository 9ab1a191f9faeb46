// SPDX-License-Identifier: Apache-2.0
#include "migrate/scan.hpp"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

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

/// Words such as lie in frames, and some at the limits of the suspect ranges.
std::uint64_t random_word(std::mt19937_64& random, std::uint64_t private_word) {
  switch (random() % 12) {
    case 0:
      return private_word;
    case 1:
      return private_word + random() % 64;
    case 2:
      return random();
    case 3:
      return random() >> 16;
    case 4:
      return address_map::default_base + random() % address_map::default_bytes / 8 * 8;
    case 5:
      return (std::uint64_t{1} << 47) - 8 + random() % 2 * 8;
    case 6:
      return word_of(&global_variable);
    default:
      return random() % 100;
  }
}

TEST_F(scan, finds_the_first_of_many_as_one_by_one_does) {
  auto object = std::make_unique<std::uint64_t>(1);
  std::mt19937_64 random(11);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::uint64_t> words(random() % 70);
    for (auto& w : words) w = random() % 4 == 0 ? random_word(random, word_of(object.get())) : 5;
    std::size_t expected = 0;
    while (expected < words.size() && !is_stale(words[expected])) ++expected;
    ASSERT_EQ(find_stale_pointer(words.data(), words.size()), expected) << "round " << round;
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
  for (std::size_t count = 0; count <= 40; ++count) {
    std::uint64_t* words = end - count;
    EXPECT_EQ(find_stale_pointer(words, count), count);
    for (std::size_t i = 0; i < count; ++i) {
      words[i] = word_of(object.get());
      if (i + 1 < count) words[count - 1] = word_of(object.get());
      EXPECT_EQ(find_stale_pointer(words, count), i) << "of " << count;
      words[i] = words[count - 1] = 0;
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
