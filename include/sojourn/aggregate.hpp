// SPDX-License-Identifier: Apache-2.0
// Aggregation: many small calls to one rank in one message.
#pragma once

#include <chrono>
#include <cstddef>

#include "sojourn/detail/marshalled.hpp"

namespace sojourn {

/// When a bundle of calls to one rank is sent: when it is full, when it is this old and the rank
/// looks at its messages, when the rank has nothing else to do, before anything else that this rank
/// sends to that one, and at the end of a `finish` and at `flush`.
struct aggregation {
  /// Of a bundle, with headers; 256 to 1 MiB.
  std::size_t bytes = 8192 - 64;
  std::chrono::nanoseconds age = std::chrono::microseconds(50);
};

/// While one lives, this rank bundles what its fibers send without waiting for an answer: rpc_ff
/// whose arguments are plain bytes, and one-sided stores and atomic additions to ranks whose heap
/// is not shared. Calls from one rank to another run in the order in which they were made, bundled
/// or not. A function called so keeps its frames on its rank: `via::migrate` in it, outside an
/// activation, is an rpc. The fiber that made this object stays on its rank. They nest: the
/// innermost one's sizes hold. SOJOURN_AGGREGATE=on does the same for a whole run.
/// Memory: `bytes` for each rank that is sent to.
/// Calls of a rank to itself are bundled as others are.
/// Suspends: at the end, when the way to a rank is full. A call that finds its bundle full lets
/// messages that have come run first. Errors: sojourn::error on a size out of range.
class aggregated {
 public:
  explicit aggregated(const aggregation& how = {});
  ~aggregated();
  aggregated(const aggregated&) = delete;
  aggregated& operator=(const aggregated&) = delete;

 private:
  detail::stays_here stays_;
  aggregation before_;
};

/// Sends all that is bundled on this rank. Suspends when the way to a rank is full.
void flush();

}  // namespace sojourn
