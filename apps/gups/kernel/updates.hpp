// SPDX-License-Identifier: Apache-2.0
// Random updates of a table that is spread over ranks: what all forms of GUPS share.
// Source: RandomAccess of the HPC Challenge benchmarks, its stream of numbers and its check; bale's
// histogram is the same kernel with additions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace apps::gups {

struct settings {
  unsigned log2_words = 20;            ///< Of the table, on each rank.
  std::uint64_t updates = 1ull << 22;  ///< Made by each rank.
  std::uint64_t bundle_bytes = 8128;   ///< Of updates to one rank in one message, where they are
                                       ///< aggregated.
};

/// The stream x(n+1) = x(n) · 2 over GF(2) modulo the polynomial x^64 + x^2 + x + 1, from the n-th
/// on.
class update_stream {
 public:
  explicit update_stream(std::uint64_t n);

  std::uint64_t next() {
    const auto overflow = static_cast<std::uint64_t>(static_cast<std::int64_t>(value_) >> 63);
    return value_ = (value_ << 1) ^ (overflow & 7);
  }

 private:
  std::uint64_t value_;
};

/// Which word an update goes to: a rank by its upper half, so that any number of ranks will do, and
/// there a word by its lower bits.
struct places {
  places(const settings& s, int of_ranks)
      : ranks(static_cast<std::uint64_t>(of_ranks)), mask((std::uint64_t{1} << s.log2_words) - 1) {}

  int rank_of(std::uint64_t update) const { return static_cast<int>((update >> 32) * ranks >> 32); }
  std::uint64_t word_of(std::uint64_t update) const { return update & mask; }
  std::uint64_t words() const { return mask + 1; }

  std::uint64_t ranks;
  std::uint64_t mask;
};

/// A rank's words before the updates.
std::vector<std::uint64_t> new_table(const settings& s, int rank);

/// Where rank `me`'s updates begin in the stream.
inline update_stream updates_of(const settings& s, int me) {
  return update_stream(s.updates * static_cast<std::uint64_t>(me));
}

/// Applies all updates to rank `me`'s words again, in one loop. What was xored twice has its first
/// value: returns the number of words that have another, which a lost, double or misplaced update
/// leaves.
std::uint64_t count_errors(const settings& s, int ranks, int me, std::span<std::uint64_t> table);
/// The sentence for it; empty when there are none.
std::string fault_of(std::uint64_t errors);

/// What as many updates take in a loop on a table of one rank.
double seconds_alone(const settings& s, int me);

}  // namespace apps::gups
