// SPDX-License-Identifier: Apache-2.0
// indexgather over Sojourn: by bundled calls there and back, and by one-sided loads.
#pragma once

#include <string>

#include "common/split_meter.hpp"
#include "indexgather/kernel/reads.hpp"

namespace apps::indexgather {

/// The same on every rank.
struct result {
  double seconds = 0;  ///< Of all reads, on the slowest rank.
  time_split split;
  sojourn::counters spent;  ///< Of all ranks together.
  std::string fault;        ///< What was read wrong; empty when nothing was.
};

/// A call without a reply to the owner for each read, which calls back with the word; both are
/// bundled. Collective. Suspends.
result run_rpc(const settings& chosen);

/// A split-phase load for each read. Collective. Suspends.
result run_onesided(const settings& chosen);

}  // namespace apps::indexgather
