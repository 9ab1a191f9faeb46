// SPDX-License-Identifier: Apache-2.0
// K-mers of the reads of a random genome, and random keys in their place: what all forms share.
//
// A k-mer is a word of k bases, 2 bits each, the first one in the highest bits; of a word and its
// reverse complement the lesser stands for both (the canonical one). Source: the k-mer counting and
// contig generation of HipMer and of the examples of BCL; minimizers are those of Roberts et al.
// (2004).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/random.hpp"

namespace apps::kmers {

using kmer = std::uint64_t;

struct settings {
  std::uint64_t bases = 200'000;  ///< Of the genome.
  std::uint64_t coverage = 10;    ///< How many reads cover a base, on average.
  unsigned k = 31;                ///< Bases of a k-mer: odd, at most 31.
  std::uint64_t random_keys = 0;  ///< If not 0: so many different keys of each rank instead.
  std::uint64_t bundle_bytes = 8192 - 64;  ///< Of what goes to a rank in one message.
};
inline constexpr std::uint64_t bases_of_a_read = 100;

/// The order in which the four bases complement each other is A, C, G, T.
constexpr unsigned complement(unsigned base) { return 3 - base; }

constexpr kmer mask_of(unsigned k) { return (kmer{1} << 2 * k) - 1; }
constexpr kmer reverse_complement(kmer word, unsigned k) {
  kmer reversed = ~word;  // each base is its complement now; then the bases change places
  reversed = (reversed >> 2 & 0x3333333333333333U) | (reversed & 0x3333333333333333U) << 2;
  reversed = (reversed >> 4 & 0x0f0f0f0f0f0f0f0fU) | (reversed & 0x0f0f0f0f0f0f0f0fU) << 4;
  return __builtin_bswap64(reversed) >> (64 - 2 * k);
}
static_assert(reverse_complement(0b00'01'11, 3) == 0b00'10'11);
constexpr kmer canonical(kmer word, unsigned k) {
  return std::min(word, reverse_complement(word, k));
}

/// The first of the canonical words of 15 bases in a k-mer; of a shorter k-mer, its canonical word.
/// Neighbours mostly share it, and a word and its reverse complement always do. In the order of the
/// alphabet, words like AAAA… would come first too often, so fixed bits turn some bases around
/// before words are compared, as in Kraken (Wood and Salzberg, 2014).
inline std::uint64_t minimizer(kmer word, unsigned k) {
  constexpr unsigned m = 15;
  constexpr kmer order = 0x1b9d6e2735a7c84bU & mask_of(m);  // bits at random
  if (k <= m) return canonical(word, k);
  const kmer backwards = reverse_complement(word, k);
  kmer first = mask_of(m);
  // The i-th word of 15 from the right is the i-th from the left of the reverse complement.
  for (unsigned i = 0; i + m <= k; ++i) {
    const kmer here = word >> 2 * i & mask_of(m);
    const kmer there = backwards >> 2 * (k - m - i) & mask_of(m);
    first = std::min(first, std::min(here, there) ^ order);
  }
  return first;
}

/// Which bases follow a k-mer and which come before it, a bit for each, and how often it was seen.
struct ends {
  std::uint8_t after = 0;
  std::uint8_t before = 0;
  std::uint32_t times = 0;
};
/// No base.
inline constexpr unsigned no_base = 4;

std::vector<std::uint8_t> genome_of(const settings& s);
/// How many reads there are, and where one begins.
std::uint64_t read_count(const settings& s);
std::uint64_t begin_of_read(const settings& s, std::uint64_t read);

/// Calls see(word, before, after) for each k-mer of a read, in the direction of the read: `before`
/// and `after` are the bases beside it, or no_base at the ends.
template <class See>
void for_each_kmer(const std::uint8_t* bases, std::size_t count, unsigned k, See see) {
  if (count < k) return;
  kmer word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    word = (word << 2 | bases[i]) & mask_of(k);
    if (i + 1 < k) continue;
    see(word, i >= k ? bases[i - k] : no_base, i + 1 < count ? bases[i + 1] : no_base);
  }
}
/// The same with canonical words, and with the reverse complement beside the word, which makes that
/// cheap.
template <class See>
void for_each_canonical_kmer(const std::uint8_t* bases, std::size_t count, unsigned k, See see) {
  kmer backwards = 0;
  std::size_t seen = 0;
  if (count < k) return;
  for (; seen + 1 < k; ++seen)
    backwards = backwards >> 2 | kmer{complement(bases[seen])} << 2 * (k - 1);
  for_each_kmer(bases, count, k, [&](kmer word, unsigned before, unsigned after) {
    backwards = backwards >> 2 | kmer{complement(bases[seen++])} << 2 * (k - 1);
    if (word <= backwards) {
      see(word, before, after);
    } else {
      see(backwards, after == no_base ? no_base : complement(after),
          before == no_base ? no_base : complement(before));
    }
  });
}

/// What a rank counts: see(canonical word, before, after), in the same order in all forms.
template <class See>
void for_each_of_rank(const settings& s, const std::vector<std::uint8_t>& genome, int rank,
                      int ranks, See see) {
  if (s.random_keys != 0) {
    const std::uint64_t first = s.random_keys * static_cast<std::uint64_t>(rank);
    for (std::uint64_t i = 0; i < s.random_keys; ++i)
      see(mix64(first + i), no_base, no_base);  // mix64 gives no number twice
    return;
  }
  const auto step = static_cast<std::uint64_t>(ranks);
  for (auto read = static_cast<std::uint64_t>(rank); read < read_count(s); read += step)
    for_each_canonical_kmer(&genome[begin_of_read(s, read)],
                            static_cast<std::size_t>(std::min(bases_of_a_read, s.bases)), s.k, see);
}

/// What all ranks have counted: of any order, and the same in all forms.
struct summary {
  std::uint64_t counted = 0;
  std::uint64_t different = 0;
  std::uint64_t check = 0;

  void add(kmer word, std::uint64_t times) {
    counted += times;
    ++different;
    check += mix64(word) * times;
  }
  friend summary operator+(summary a, const summary& b) {
    return {a.counted + b.counted, a.different + b.different, a.check + b.check};
  }
  friend bool operator==(const summary&, const summary&) = default;
};

/// A table with the counts in its places, which grows.
class flat_table {
 public:
  explicit flat_table(std::size_t places = 1024) : places_(places) {}

  void add(kmer word, std::uint64_t hash) {
    for (std::size_t at = hash & (places_.size() - 1);; at = (at + 1) & (places_.size() - 1)) {
      place& p = places_[at];
      if (p.times == 0) {
        p = {word, 1};
        if (++used_ * 8 > places_.size() * 5) grow();
        return;
      }
      if (p.word == word) {
        ++p.times;
        return;
      }
    }
  }
  void prefetch(std::uint64_t hash) const {
    __builtin_prefetch(&places_[hash & (places_.size() - 1)], 1);
  }
  summary sum() const;

 private:
  struct place {
    kmer word = 0;
    std::uint64_t times = 0;  ///< 0: nobody is here.
  };
  void grow();

  std::vector<place> places_;  ///< As many as a power of two.
  std::size_t used_ = 0;
};

/// What comes out, by std::unordered_map in one loop: in `seconds`, without the genome.
summary count_alone(const settings& s, const std::vector<std::uint8_t>& genome, int ranks,
                    double& seconds);

}  // namespace apps::kmers
