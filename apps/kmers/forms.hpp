// SPDX-License-Identifier: Apache-2.0
// Counting k-mers with containers, and walking along them.
#pragma once

#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <vector>

#include "kmers/kernel/kmers.hpp"

namespace apps::kmers {

/// The same on every rank.
struct result {
  summary all;
  double seconds = 0;
  sojourn::counters spent;  ///< Of all ranks together.
};

/// A dist_counter. Collective. Suspends.
result run_counter(const settings& chosen, const std::vector<std::uint8_t>& genome);
/// A dist_map, whose values are what comes before and after, and how often. Collective. Suspends.
result run_map(const settings& chosen, const std::vector<std::uint8_t>& genome);

struct walk_settings {
  std::uint64_t walks = 2000;  ///< Begun by each rank.
  std::uint64_t steps = 100;   ///< Of a walk, at most.
  bool by_minimizer = true;    ///< Where k-mers lie: by their minimizers, or by their hashes.
  sojourn::via how = sojourn::via::migrate;
};
struct walk_result {
  std::uint64_t steps = 0;
  double seconds = 0;
  sojourn::counters spent;
};
/// Builds the map, and then walks from k-mers of the genome to the one that follows, as long as
/// only one does. Collective. Suspends. Errors: refusal when a walk leaves the genome.
walk_result run_walk(const settings& chosen, const walk_settings& walks,
                     const std::vector<std::uint8_t>& genome);

}  // namespace apps::kmers
