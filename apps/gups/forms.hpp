// SPDX-License-Identifier: Apache-2.0
// GUPS over Sojourn: by remote calls, bundled or each in its message, and by atomic words.
#pragma once

#include <string>

#include "common/split_meter.hpp"
#include "gups/kernel/updates.hpp"

namespace apps::gups {

/// The same on every rank.
struct result {
  double seconds = 0;  ///< Of all updates, on the slowest rank.
  time_split split;
  sojourn::counters spent;  ///< Of all ranks together.
  std::string fault;        ///< What is wrong with the table; empty when nothing is.
};

/// A call without a reply to the owner for each update, bundled by destination (aggregate.hpp) or
/// not. Collective. Suspends.
result run_rpc(const settings& chosen, bool bundled);

/// The same, bundled, of a method that takes many updates at once (batch.hpp). Collective.
/// Suspends.
result run_batch(const settings& chosen);

/// An atomic exclusive-or for each update: an instruction where the word is in reach, bundled calls
/// elsewhere. Collective. Suspends.
result run_onesided(const settings& chosen);

/// What both do after the updates. Collective. Suspends.
result checked(const settings& chosen, const split_meter& meter, std::span<std::uint64_t> table);

}  // namespace apps::gups
