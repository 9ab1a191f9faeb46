// SPDX-License-Identifier: Apache-2.0
// EM3D over Sojourn: by remote calls, and one-sided.
#pragma once

#include <string>

#include "common/split_meter.hpp"
#include "em3d/kernel/graph.hpp"

namespace apps::em3d {

/// The same on every rank.
struct result {
  double seconds = 0;  ///< Of the measured steps, on the slowest rank.
  time_split split;
  sojourn::counters spent;  ///< Of all ranks together.
  unit_costs costs;         ///< Of this rank.
  std::string fault;        ///< What differs from one loop's values; empty when nothing does.
};

/// Values are read by calling methods of the nodes, or of a mailbox. Collective. Suspends.
result run_rpc(const settings& chosen);

/// Values are read by loads, gets and puts: no method runs at the other end. Collective. Suspends.
result run_onesided(const settings& chosen);

/// As the bulk variant of these, and each put is followed by a signal in place of a barrier.
/// Collective. Suspends.
result run_put_and_signal(const settings& chosen);

}  // namespace apps::em3d
