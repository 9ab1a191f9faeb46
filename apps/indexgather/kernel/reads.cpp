// SPDX-License-Identifier: Apache-2.0
#include "indexgather/kernel/reads.hpp"

#include <fmt/format.h>

#include <chrono>

#include "common/random.hpp"

namespace apps::indexgather {

std::uint64_t value_of(std::uint64_t word) { return mix64(word); }

std::vector<std::uint64_t> make_table(const settings& s, int rank) {
  std::vector<std::uint64_t> table(std::size_t{1} << s.log2_words);
  const std::uint64_t first = static_cast<std::uint64_t>(rank) << s.log2_words;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = value_of(first + i);
  return table;
}

std::vector<std::uint64_t> make_reads(const settings& s, int ranks, int rank) {
  random_source random(static_cast<std::uint64_t>(rank));
  const std::uint64_t words = static_cast<std::uint64_t>(ranks) << s.log2_words;
  std::vector<std::uint64_t> reads(s.reads);
  for (std::uint64_t& r : reads) r = random.below(words);
  return reads;
}

std::string fault_of(const std::vector<std::uint64_t>& reads,
                     const std::vector<std::uint64_t>& found) {
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (found[i] == value_of(reads[i])) continue;
    return fmt::format("read {} of word {} gave {:#x}, not {:#x}", i, reads[i], found[i],
                       value_of(reads[i]));
  }
  return {};
}

double seconds_alone(const settings& s, int me) {
  const std::vector<std::uint64_t> table = make_table(s, 0);
  const std::vector<std::uint64_t> reads = make_reads(s, 1, me);
  std::vector<std::uint64_t> found(reads.size());
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < reads.size(); ++i) found[i] = table[reads[i]];
  const auto end = std::chrono::steady_clock::now();
  // Looked at, so that the loop is not left out.
  return fault_of(reads, found).empty() ? std::chrono::duration<double>(end - start).count() : 0;
}

}  // namespace apps::indexgather
