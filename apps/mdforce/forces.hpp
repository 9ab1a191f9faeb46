// SPDX-License-Identifier: Apache-2.0
// All nonbonded forces of a step, by a child for each pair of atoms.
#pragma once

#include <sojourn/sojourn.hpp>

#include <string>

#include "mdforce/kernel/pairs.hpp"

namespace apps::mdforce {

/// What the children of pairs met. Each is one of these.
struct encounters {
  std::uint64_t local = 0;    ///< Both atoms are this rank's.
  std::uint64_t cached = 0;   ///< The other's coordinates had been fetched before.
  std::uint64_t fetched = 0;  ///< It called the other atom's rank for them.

  std::uint64_t pairs() const { return local + cached + fetched; }
  friend encounters operator+(const encounters& a, const encounters& b) {
    return {a.local + b.local, a.cached + b.cached, a.fetched + b.fetched};
  }
};

/// The same on every rank.
struct result {
  double seconds = 0;        ///< Of all steps, on the slowest rank.
  double seconds_alone = 0;  ///< Of as many steps in one loop, as rank 0 measured it.
  encounters met;            ///< In all steps, on all ranks.
  sojourn::counters spent;   ///< The same.
  std::string fault;         ///< What differs from one loop; empty when nothing does.

  /// Pairs that called another rank, and pairs that did not.
  std::uint64_t remote() const { return met.fetched; }
  std::uint64_t local() const { return met.pairs() - met.fetched; }
};

/// Computes the forces chosen.steps times. Collective. Suspends.
result run(const settings& chosen);

}  // namespace apps::mdforce
