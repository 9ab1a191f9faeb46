// SPDX-License-Identifier: Apache-2.0
#include "memory/page_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace {

using namespace sojourn::detail;

constexpr std::uint64_t pages = 300;

std::uint64_t next_in(const std::vector<bool>& model, bool set, std::uint64_t from,
                      std::uint64_t end) {
  while (from < end && model[from] != set) ++from;
  return from;
}

TEST(page_map, is_what_a_vector_of_bits_is) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::array<std::uint64_t, pages / bits_of_word + 1> map{};
    std::vector<bool> model(pages);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t from = random() % pages;
      const std::uint64_t count = random() % (std::min<std::uint64_t>(pages - from, 150) + 1);
      const bool set = random() % 2 == 0;
      set ? fill_bits<true>(map.data(), from, count) : fill_bits<false>(map.data(), from, count);
      std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(from), count, set);
      const std::uint64_t at = random() % pages;
      ASSERT_EQ(bit(map.data(), at), model[at]);
      for (const std::uint64_t end : {at, at + (pages - at) / 2, pages}) {
        ASSERT_EQ(next_bit<true>(map.data(), at, end), next_in(model, true, at, end));
        ASSERT_EQ(next_bit<false>(map.data(), at, end), next_in(model, false, at, end));
      }
    }
  }
}

}  // namespace
