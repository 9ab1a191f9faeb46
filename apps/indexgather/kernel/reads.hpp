// SPDX-License-Identifier: Apache-2.0
// Random reads of a table that is spread over ranks: what all forms of indexgather share.
// Source: bale's kernel of that name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace apps::indexgather {

struct settings {
  unsigned log2_words = 20;           ///< Of the table, on each rank.
  std::uint32_t reads = 1u << 20;     ///< Made by each rank.
  std::uint64_t bundle_bytes = 8128;  ///< Of reads to one rank in one message, where they are
                                      ///< aggregated.
};

/// The content of a word of the table, by its number in the whole.
std::uint64_t value_of(std::uint64_t word);

/// A rank's words.
std::vector<std::uint64_t> make_table(const settings& s, int rank);
/// The numbers of the words that a rank reads.
std::vector<std::uint64_t> make_reads(const settings& s, int ranks, int rank);

/// Which rank has a word, and where there.
struct places {
  explicit places(const settings& s)
      : shift(s.log2_words), mask((std::uint64_t{1} << s.log2_words) - 1) {}
  int rank_of(std::uint64_t word) const { return static_cast<int>(word >> shift); }
  std::uint32_t word_of(std::uint64_t word) const {
    return static_cast<std::uint32_t>(word & mask);
  }

  unsigned shift;
  std::uint64_t mask;
};

/// A sentence when not each of `found` is the value of the word it was read from; empty otherwise.
std::string fault_of(const std::vector<std::uint64_t>& reads,
                     const std::vector<std::uint64_t>& found);

/// What as many reads take in a loop on a table of one rank.
double seconds_alone(const settings& s, int me);

}  // namespace apps::indexgather
