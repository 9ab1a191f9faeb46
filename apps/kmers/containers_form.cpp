// SPDX-License-Identifier: Apache-2.0
#include <sojourn/containers.hpp>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>

#include "common/command_line.hpp"
#include "common/stopwatch.hpp"
#include "kmers/forms.hpp"

namespace apps::kmers {
namespace {

using sojourn::via;

void see(ends& e, unsigned before, unsigned after) {
  ++e.times;
  if (before != no_base) e.before |= static_cast<std::uint8_t>(1u << before);
  if (after != no_base) e.after |= static_cast<std::uint8_t>(1u << after);
}
struct note_ends {
  void operator()(ends& e, std::uint8_t before, std::uint8_t after) const { see(e, before, after); }
};
/// Calls see(word, before, after) for each word of this rank.
template <class See>
void for_each_word(const settings& chosen, const std::vector<std::uint8_t>& genome, See see) {
  sojourn::finish_all(
      [&] { for_each_of_rank(chosen, genome, sojourn::rank_me(), sojourn::rank_count(), see); },
      sojourn::team::world(), {.bytes = chosen.bundle_bytes});
}
template <class Map>
void fill(const Map& map, const settings& chosen, const std::vector<std::uint8_t>& genome) {
  for_each_word(chosen, genome, [&](kmer word, unsigned before, unsigned after) {
    map.ff_update(word, note_ends(), static_cast<std::uint8_t>(before),
                  static_cast<std::uint8_t>(after));
  });
}

/// Makes a map by fill(map), and sums up what is there: the times of an element are times(value).
template <class V, class Fill, class Times>
result run_map_of(Fill fill, Times times) {
  result r;
  stopwatch watch;
  const auto map = sojourn::dist_map<kmer, V>::make();
  fill(map);
  watch.stop(r.seconds, r.spent);
  summary mine;
  for (const auto& [word, value] : map) mine.add(word, times(value));
  r.all = sojourn::reduce(mine, std::plus<>{});
  map.destroy_all();
  return r;
}

/// Gives the same number to most k-mers that follow each other.
template <unsigned K>
struct by_minimizer {
  std::uint64_t operator()(kmer word) const { return minimizer(word, K); }
};
constexpr unsigned walked_k = 31;

/// The base after a word, when there is just one.
unsigned only_base(unsigned bits) {
  return std::has_single_bit(bits) ? static_cast<unsigned>(std::countr_zero(bits)) : no_base;
}

struct unitig {
  std::uint64_t steps = 0;
  kmer last = 0;
};
template <class Map>
unitig walk(Map map, kmer from, std::uint64_t most, via how) {
  unitig found{0, from};
  while (found.steps < most) {
    const kmer word = found.last;
    const kmer name = canonical(word, walked_k);
    const std::optional<ends> e = map.find(how, name);
    if (!e) break;
    const unsigned base = name == word ? only_base(e->after) : only_base(e->before);
    if (base == no_base) break;
    found.last = (word << 2 | (name == word ? base : complement(base))) & mask_of(walked_k);
    ++found.steps;
  }
  return found;
}

template <class Place>
walk_result run_walk_by(const settings& chosen, const walk_settings& walks,
                        const std::vector<std::uint8_t>& genome) {
  using map_type = sojourn::dist_map<kmer, ends, std::hash<kmer>, Place>;
  const auto map = map_type::make();
  fill(map, chosen, genome);

  const std::uint64_t places = chosen.bases - chosen.k + 1;
  walk_result r;
  std::uint64_t steps = 0;
  bool wrong = false;
  stopwatch watch;
  sojourn::par_for(
      std::uint64_t{0}, walks.walks,
      [&](std::uint64_t i) {
        const std::uint64_t begin = mix64(i * static_cast<std::uint64_t>(sojourn::rank_count()) +
                                          static_cast<std::uint64_t>(sojourn::rank_me())) %
                                    places;
        kmer word = 0;
        for (std::uint64_t j = 0; j < chosen.k; ++j) word = word << 2 | genome[begin + j];
        const unitig found = sojourn::activate(walk<map_type>, map, word, walks.steps, walks.how);
        // The genome itself says where so many steps lead.
        const std::uint64_t end = begin + found.steps;
        if (end >= places) {
          wrong = true;
        } else {
          kmer expected = 0;
          for (std::uint64_t j = 0; j < chosen.k; ++j) expected = expected << 2 | genome[end + j];
          wrong = wrong || expected != found.last;
        }
        steps += found.steps;
      },
      {.in_flight = 256});
  watch.stop(r.seconds, r.spent);
  r.steps = sojourn::reduce(steps, std::plus<>{});
  const bool anywhere = sojourn::reduce(wrong ? 1 : 0, std::plus<>{}) > 0;
  map.destroy_all();
  if (anywhere) throw refusal(1, "a walk has left the genome");
  return r;
}

}  // namespace

result run_counter(const settings& chosen, const std::vector<std::uint8_t>& genome) {
  result r;
  stopwatch watch;
  const auto counts = sojourn::dist_counter<kmer>::make();
  for_each_word(chosen, genome, [&](kmer word, unsigned, unsigned) { counts.ff_add(word); });
  watch.stop(r.seconds, r.spent);
  summary mine;
  for (const auto& [word, times] : counts) mine.add(word, static_cast<std::uint64_t>(times));
  r.all = sojourn::reduce(mine, std::plus<>{});
  counts.destroy_all();
  return r;
}

result run_map(const settings& chosen, const std::vector<std::uint8_t>& genome) {
  if (chosen.random_keys != 0) {  // nothing stands beside these
    return run_map_of<std::uint64_t>(
        [&](const auto& map) {
          for_each_word(chosen, genome, [&](kmer word, unsigned, unsigned) {
            map.ff_update(word, [](std::uint64_t& times) { ++times; });
          });
        },
        [](std::uint64_t times) { return times; });
  }
  return run_map_of<ends>([&](const auto& map) { fill(map, chosen, genome); },
                          [](const ends& e) { return e.times; });
}

walk_result run_walk(const settings& chosen, const walk_settings& walks,
                     const std::vector<std::uint8_t>& genome) {
  if (chosen.k != walked_k || chosen.random_keys != 0)
    throw refusal(2, "--form walk needs k-mers of 31 bases: leave out --k and --random-keys");
  return walks.by_minimizer ? run_walk_by<by_minimizer<walked_k>>(chosen, walks, genome)
                            : run_walk_by<std::hash<kmer>>(chosen, walks, genome);
}

}  // namespace apps::kmers
