// SPDX-License-Identifier: Apache-2.0
// The butterfly computes the definition, however many processors share it, and its check notices
// what is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fft/kernel/check.hpp"

namespace {

using namespace apps::fft;

/// What processors make that exchange their chunks by copying.
std::vector<complex> transform(const layout& l, std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(l.processors);
  std::vector<std::vector<complex>> rows(count, std::vector<complex>(l.share()));
  std::vector<std::vector<complex>> blocks(count, std::vector<complex>(l.share()));
  std::vector<part> parts;
  for (std::size_t p = 0; p < count; ++p) {
    complex* block = count == 1 ? rows[p].data() : blocks[p].data();
    parts.emplace_back(l, static_cast<int>(p), rows[p].data(), block).fill(seed);
    parts.back().first_steps();
  }
  for (int p = 0; p < l.processors; ++p) {
    part& from = parts[static_cast<std::size_t>(p)];
    from.keep_own();
    for (int round = 1; round < l.processors; ++round) {
      const int to = from.partner(round);
      std::copy_n(from.outgoing(to), l.chunk(), parts[static_cast<std::size_t>(to)].incoming(p));
    }
  }
  std::vector<complex> spectrum(l.points());
  for (std::size_t p = 0; p < count; ++p) {
    parts[p].last_steps();
    put_in_order(l, static_cast<int>(p), count == 1 ? rows[p].data() : blocks[p].data(), spectrum);
  }
  return spectrum;
}

TEST(fft, the_spectrum_is_the_sum_of_the_definition) {
  for (int log2_points = 1; log2_points <= 9; ++log2_points) {
    const layout l{.log2_points = log2_points, .processors = 1};
    const std::vector<complex> spectrum = transform(l, 5);
    const double n = static_cast<double>(l.points());
    for (std::size_t k = 0; k < l.points(); ++k) {
      complex sum = 0;
      for (std::size_t i = 0; i < l.points(); ++i) {
        sum += signal(5, i) * root(static_cast<double>(k * i) / n);
      }
      EXPECT_NEAR(std::abs(spectrum[k] - sum), 0, 1e-13 * n) << k << " of " << n;
    }
  }
}

TEST(fft, any_number_of_processors_makes_the_same) {
  for (const int log2_points : {8, 11, 12}) {
    for (const int processors : {1, 2, 4, 8, 16}) {
      const layout l{.log2_points = log2_points, .processors = processors};
      ASSERT_FALSE(l.fault());
      const errors e = compare(l, 9, transform(l, 9));
      EXPECT_FALSE(fault(l, e)) << processors << " processors: " << to_text(l, e);
    }
  }
}

TEST(fft, each_bin_is_of_one_element_of_one_processor) {
  const layout l{.log2_points = 9, .processors = 8};
  std::vector<int> seen(l.points());
  for (int p = 0; p < l.processors; ++p) {
    for (std::size_t i = 0; i < l.share(); ++i) ++seen[l.bin(p, i)];
  }
  EXPECT_EQ(std::ranges::count(seen, 1), static_cast<std::ptrdiff_t>(l.points()));
}

TEST(fft, the_check_notices_what_is_wrong) {
  const layout l{.log2_points = 10, .processors = 1};
  const std::vector<complex> right = transform(l, 3);
  ASSERT_FALSE(fault(l, compare(l, 3, right)));
  const auto is_noticed = [&](auto spoil) {
    std::vector<complex> wrong = right;
    spoil(wrong);
    return fault(l, compare(l, 3, wrong)).has_value();
  };
  EXPECT_TRUE(is_noticed([](auto& s) { std::swap(s[100], s[101]); }));
  EXPECT_TRUE(is_noticed([](auto& s) { s[700] *= 1 + 1e-11; }));
  EXPECT_TRUE(is_noticed([](auto& s) { s[5] = std::conj(s[5]); }));
  EXPECT_TRUE(is_noticed([](auto& s) { s[1] = std::numeric_limits<double>::quiet_NaN(); }));
  EXPECT_TRUE(fault(l, compare(l, 4, right)).has_value()) << "that of another signal";
}

}  // namespace
