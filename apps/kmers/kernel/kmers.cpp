// SPDX-License-Identifier: Apache-2.0
#include "kmers/kernel/kmers.hpp"

#include <chrono>
#include <unordered_map>

namespace apps::kmers {

std::vector<std::uint8_t> genome_of(const settings& s) {
  if (s.random_keys != 0) return {};
  std::vector<std::uint8_t> bases(s.bases);
  for (std::uint64_t i = 0; i < s.bases; ++i)
    bases[i] = static_cast<std::uint8_t>(mix64(i ^ 0x6e6f6d65) & 3);
  return bases;
}

std::uint64_t read_count(const settings& s) {
  return std::max<std::uint64_t>(1, s.bases * s.coverage / bases_of_a_read);
}
std::uint64_t begin_of_read(const settings& s, std::uint64_t read) {
  return s.bases <= bases_of_a_read ? 0
                                    : mix64(read ^ 0x72656164) % (s.bases - bases_of_a_read + 1);
}

void flat_table::grow() {
  flat_table larger(places_.size() * 2);
  for (const place& p : places_) {
    if (p.times == 0) continue;
    std::size_t at = mix64(p.word) & (larger.places_.size() - 1);
    while (larger.places_[at].times != 0) at = (at + 1) & (larger.places_.size() - 1);
    larger.places_[at] = p;
  }
  places_.swap(larger.places_);
}

summary flat_table::sum() const {
  summary s;
  for (const place& p : places_)
    if (p.times != 0) s.add(p.word, p.times);
  return s;
}

summary count_alone(const settings& s, const std::vector<std::uint8_t>& genome, int ranks,
                    double& seconds) {
  struct hash {
    std::size_t operator()(kmer word) const { return mix64(word); }
  };
  const auto start = std::chrono::steady_clock::now();
  std::unordered_map<kmer, std::uint64_t, hash> counts;
  for (int rank = 0; rank < ranks; ++rank)
    for_each_of_rank(s, genome, rank, ranks,
                     [&](kmer word, unsigned, unsigned) { ++counts[word]; });
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  summary all;
  for (const auto& [word, times] : counts) all.add(word, times);
  return all;
}

}  // namespace apps::kmers
