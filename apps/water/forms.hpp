// SPDX-License-Identifier: Apache-2.0
// Water over Sojourn: by remote calls, and one-sided.
#pragma once

#include <string>

#include "common/split_meter.hpp"
#include "water/kernel/molecules.hpp"

namespace apps::water {

/// The same on every rank.
struct result {
  double seconds = 0;  ///< Of the measured steps, on the slowest rank.
  energies last;
  time_split split;
  sojourn::counters spent;  ///< Of all ranks together.
  unit_costs costs;         ///< Of this rank.
  std::string fault;        ///< What differs from what one loop computes; empty when nothing does.
};

/// Molecules are read, and forces added, by calling methods. Collective. Suspends.
result run_rpc(const settings& chosen);

/// Molecules are read by loads and gets. Forces are put, or added by bare one-way messages, as
/// Split-C's atomic operations are. Collective. Suspends.
result run_onesided(const settings& chosen);

}  // namespace apps::water
