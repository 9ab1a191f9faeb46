// SPDX-License-Identifier: Apache-2.0
// Walks along the k-mers of reads, which lie on the ranks by their hashes or by their minimizers:
// docs/placement.md.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <sojourn/containers.hpp>
#include <sojourn/sojourn.hpp>
#include <vector>

using namespace sojourn;

// ---- K-mers: words of k bases, 2 bits each, the first one in the highest bits ----

using kmer = std::uint64_t;
constexpr std::size_t k = 31;
constexpr kmer mask(std::size_t length) { return (kmer{1} << 2 * length) - 1; }

// The same on the other strand. Of the two, the lesser stands for both.
constexpr kmer reverse(kmer word, std::size_t length = k) {
  kmer reversed = 0;
  for (std::size_t i = 0; i < length; ++i, word >>= 2) reversed = reversed << 2 | (3 - (word & 3));
  return reversed;
}
constexpr kmer canonical(kmer word, std::size_t length = k) {
  return std::min(word, reverse(word, length));
}

// Which bases were seen before and behind a k-mer, a bit for each, and how often it was seen.
struct ends {
  unsigned before = 0;
  unsigned after = 0;
  unsigned times = 0;
  ends of_other_strand() const {
    constexpr auto complements = [](unsigned bits) {
      return (bits & 1) << 3 | (bits & 2) << 1 | (bits & 4) >> 1 | (bits & 8) >> 3;
    };
    return {complements(after), complements(before), times};
  }
};
constexpr auto add = [](ends& e, ends more) {
  e = {e.before | more.before, e.after | more.after, e.times + more.times};
};

// The k-mer behind a word, when there is just one; `e` is of the canonical one. What is behind
// reverse(word) stands before the word.
std::optional<kmer> next(kmer word, const ends& e) {
  const unsigned bases = (word == canonical(word) ? e : e.of_other_strand()).after;
  if (!std::has_single_bit(bases)) return std::nullopt;
  return (word << 2 | static_cast<kmer>(std::countr_zero(bases))) & mask(k);
}

// Of a k-mer and its reverse, those that have none or several before them: walks begin there.
std::vector<kmer> beginnings(kmer name, const ends& e) {
  std::vector<kmer> words{name, reverse(name)};
  std::erase_if(words, [&](kmer word) { return next(reverse(word), e).has_value(); });
  return words;
}

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Reads of 100 bases, without errors, of a random genome. Real ones are in a file, of which each
// rank has its part: for (const sequence& read : sequences("reads.fastq.gz")).
constexpr std::uint64_t bases_of_genome = 20'000;
constexpr int reads = 1'400;
std::vector<unsigned> make_read(int number) {
  const std::uint64_t begin = mix(static_cast<std::uint64_t>(number)) % (bases_of_genome - 99);
  std::vector<unsigned> read(100);
  for (std::size_t i = 0; i < read.size(); ++i) read[i] = mix(~(begin + i)) & 3;
  return read;
}

// Calls see(canonical k-mer, ends) for each k-mer of a read.
template <class See>
void for_each_kmer(const std::vector<unsigned>& read, See see) {
  kmer word = 0;
  for (std::size_t i = 0; i < read.size(); ++i) {
    word = (word << 2 | read[i]) & mask(k);
    if (i + 1 < k) continue;
    const ends e{.before = i >= k ? 1u << read[i - k] : 0,
                 .after = i + 1 < read.size() ? 1u << read[i + 1] : 0,
                 .times = 1};
    see(canonical(word), word == canonical(word) ? e : e.of_other_strand());
  }
}

// Where a k-mer lies: the first of the words of 15 bases in it, which most neighbours share. In the
// order of the alphabet, words of many As would come first too often: some bits turn it around.
struct by_minimizer {
  std::uint64_t operator()(kmer word) const {
    constexpr std::size_t length = 15;
    constexpr kmer some_bits = 0x35a7c84b;
    kmer first = mask(length);
    for (std::size_t i = 0; i + length <= k; ++i)
      first = std::min(first, canonical(word >> 2 * i & mask(length), length) ^ some_bits);
    return first;
  }
};

// ---- The program ----

// From a k-mer to the next, as long as just one stands behind the one and before the other.
template <class Map>
long walk(Map map, kmer word, via how) {
  for (long steps = 0;; ++steps) {
    const ends e = map.find(how, canonical(word)).value_or(ends());
    if (!next(word, e) || (steps > 0 && !next(reverse(word), e))) return steps;
    word = *next(word, e);
  }
}

template <class Map>
void count_and_walk(const char* place) {
  const auto map = Map::make();
  finish_all([&] {
    for (int i = rank_me(); i < reads; i += rank_count())
      for_each_kmer(make_read(i), [&](kmer word, ends seen) { map.ff_update(word, add, seen); });
  });

  const counters before = counters_now();
  barrier();  // nobody walks before all have looked
  long mine = 0;
  for (const auto& [name, e] : map)  // this rank's k-mers
    for (const kmer word : beginnings(name, e))
      mine += activate(walk<Map>, map, word, via::migrate);
  const long steps = reduce(mine, std::plus<>());  // comes when all have walked
  const counters spent = reduce(counters_now() - before, std::plus<>());
  if (rank_me() == 0)
    std::printf("by %s: %ld steps, %.2f messages a step\n", place, steps,
                static_cast<double>(spent.messages()) / static_cast<double>(steps));
  map.destroy_all();
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    count_and_walk<dist_map<kmer, ends>>("hash");
    count_and_walk<dist_map<kmer, ends, std::hash<kmer>, by_minimizer>>("minimizer");
  });
}
