// SPDX-License-Identifier: Apache-2.0
#include "gups/kernel/updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>

namespace apps::gups {
namespace {

std::uint64_t doubled(std::uint64_t x) { return (x << 1) ^ ((x >> 63) * 7); }

/// Of two polynomials.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  for (int bit = 63; bit >= 0; --bit) sum = doubled(sum) ^ ((b >> bit & 1) * a);
  return sum;
}

}  // namespace

update_stream::update_stream(std::uint64_t n) : value_(1) {
  std::uint64_t power = 2;  // x^(2^i)
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) value_ = product(value_, power);
    power = product(power, power);
  }
}

std::vector<std::uint64_t> new_table(const settings& s, int rank) {
  std::vector<std::uint64_t> table(std::size_t{1} << s.log2_words);
  const std::uint64_t first = static_cast<std::uint64_t>(rank) << s.log2_words;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = first + i;
  return table;
}

std::uint64_t count_errors(const settings& s, int ranks, int me, std::span<std::uint64_t> table) {
  const places of(s, ranks);
  for (int r = 0; r < ranks; ++r) {
    update_stream stream = updates_of(s, r);
    for (std::uint64_t i = 0; i < s.updates; ++i) {
      const std::uint64_t update = stream.next();
      if (of.rank_of(update) == me) table[of.word_of(update)] ^= update;
    }
  }
  const std::uint64_t first = static_cast<std::uint64_t>(me) << s.log2_words;
  std::uint64_t errors = 0;
  for (std::size_t i = 0; i < table.size(); ++i) errors += table[i] != first + i;
  return errors;
}

std::string fault_of(std::uint64_t errors) {
  if (errors == 0) return {};
  return fmt::format("{} words are not what the updates make of them", errors);
}

double seconds_alone(const settings& s, int me) {
  std::vector<std::uint64_t> table = new_table(s, me);
  update_stream stream = updates_of(s, me);
  const places of(s, 1);
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < s.updates; ++i) {
    const std::uint64_t update = stream.next();
    table[of.word_of(update)] ^= update;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace apps::gups
