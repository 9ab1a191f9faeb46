// SPDX-License-Identifier: Apache-2.0
// Maps of pages: a bit for each page, from the lowest bit of the first word.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace sojourn::detail {

inline constexpr std::uint64_t bits_of_word = 64;

/// The first page from `from` on whose bit is `Set`, or `end`.
template <bool Set>
std::uint64_t next_bit(const std::uint64_t* map, std::uint64_t from, std::uint64_t end) {
  while (from < end) {
    std::uint64_t word = map[from / bits_of_word];
    word = (Set ? word : ~word) >> from % bits_of_word;
    if (word != 0) {
      return std::min(end, from + static_cast<std::uint64_t>(std::countr_zero(word)));
    }
    from = (from / bits_of_word + 1) * bits_of_word;
  }
  return end;
}

template <bool Set>
void fill_bits(std::uint64_t* map, std::uint64_t from, std::uint64_t count) {
  while (count > 0) {
    std::uint64_t n = std::min(count, bits_of_word - from % bits_of_word);
    std::uint64_t mask = (~std::uint64_t{0} >> (bits_of_word - n)) << from % bits_of_word;
    if (Set) {
      map[from / bits_of_word] |= mask;
    } else {
      map[from / bits_of_word] &= ~mask;
    }
    from += n;
    count -= n;
  }
}

inline bool bit(const std::uint64_t* map, std::uint64_t at) {
  return (map[at / bits_of_word] >> at % bits_of_word & 1) != 0;
}

}  // namespace sojourn::detail
