// SPDX-License-Identifier: Apache-2.0
// Blocks are dealt out completely, what is computed with them is a factorization, and its check
// notices what is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "lu/kernel/check.hpp"

namespace {

using namespace apps::lu;

std::vector<double> factors_of(const layout& l, std::uint64_t seed) {
  std::vector<double> numbers(l.size * l.size);
  part p(l, 0, numbers.data());
  p.fill(seed);
  for (std::size_t k = 0; k < l.blocks(); ++k) {
    p.factor_pivot(k);
    p.solve_border(k, p.at(k, k), [](std::size_t, std::size_t) {});
    p.use_own_border(k);
    p.update_inner(k, [] {});
  }
  return numbers;
}

TEST(lu, each_block_has_a_place_of_its_own) {
  for (int processors = 1; processors <= 12; ++processors) {
    const layout l{.size = 28, .block = 4, .processors = processors};
    std::set<std::pair<int, std::size_t>> places;
    for (std::size_t i = 0; i < l.blocks(); ++i) {
      for (std::size_t j = 0; j < l.blocks(); ++j) {
        const int owner = l.owner(i, j);
        EXPECT_LT(l.place(i, j), l.count(owner));
        places.emplace(owner, l.place(i, j));
      }
    }
    EXPECT_EQ(places.size(), l.blocks() * l.blocks());
    EXPECT_EQ(l.rows() * l.columns(), processors);
  }
}

TEST(lu, what_a_processor_misses_its_owner_sends) {
  for (int processors = 1; processors <= 12; ++processors) {
    const layout l{.size = 28, .block = 4, .processors = processors};
    std::vector<std::vector<double>> memory;
    std::vector<part> parts;
    for (int p = 0; p < processors; ++p) {
      memory.emplace_back(l.count(p) * l.block_numbers() + 1);
      parts.emplace_back(l, p, memory.back().data());
    }
    using block = std::pair<std::size_t, std::size_t>;
    for (std::size_t k = 0; k < l.blocks(); ++k) {
      std::multiset<std::pair<int, block>> missing;
      std::multiset<std::pair<int, block>> sent;
      std::multiset<int> needs_pivot;
      std::multiset<int> gets_pivot;
      for (int p = 0; p < processors; ++p) {
        const part& mine = parts[static_cast<std::size_t>(p)];
        mine.for_missing(k, [&](std::size_t i, std::size_t j) { missing.insert({p, {i, j}}); });
        mine.for_border(k, [&](std::size_t i, std::size_t j) {
          EXPECT_TRUE(mine.is_mine(i, j));
          mine.for_consumers(k, i, j, [&](int to) { sent.insert({to, {i, j}}); });
        });
        if (mine.is_mine(k, k)) {
          mine.for_consumers(k, k, k, [&](int to) { gets_pivot.insert(to); });
        } else if (mine.has_border(k)) {
          needs_pivot.insert(p);
        }
      }
      EXPECT_EQ(missing, sent) << "step " << k << " of " << processors << " processors";
      EXPECT_EQ(needs_pivot, gets_pivot) << "step " << k << " of " << processors << " processors";
    }
  }
}

TEST(lu, factors_are_those_of_the_matrix) {
  for (const std::size_t block : {4u, 12u, 16u}) {
    const layout l{.size = 96, .block = block, .processors = 1};
    const residual r = check(l, 2, factors_of(l, 2));
    EXPECT_TRUE(r.is_whole);
    EXPECT_FALSE(fault(r)) << to_text(r);
  }
}

TEST(lu, the_check_notices_what_is_wrong_whole_or_probed) {
  for (const std::size_t size : {std::size_t{64}, whole_max + 32}) {
    const layout l{.size = size, .block = 32, .processors = 1};
    const std::vector<double> right = factors_of(l, 2);
    const residual good = check(l, 2, right);
    EXPECT_EQ(good.is_whole, size == 64);
    ASSERT_FALSE(fault(good)) << to_text(good);
    const auto is_noticed = [&](auto spoil) {
      std::vector<double> wrong = right;
      spoil(wrong);
      return fault(check(l, 2, wrong)).has_value();
    };
    const std::size_t last = l.size * l.size - 1;
    EXPECT_TRUE(is_noticed([&](auto& v) { v[last] *= 1 + 1e-6; }));
    EXPECT_TRUE(is_noticed([&](auto& v) { v[l.block_numbers() + 5] += 1e-3; }));
    EXPECT_TRUE(is_noticed([&](auto& v) { std::swap(v[0], v[last]); }));
    EXPECT_TRUE(is_noticed([&](auto& v) { v[7] = std::numeric_limits<double>::quiet_NaN(); }));
    EXPECT_TRUE(fault(check(l, 3, right)).has_value()) << "those of another matrix";
  }
}

}  // namespace
