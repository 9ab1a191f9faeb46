// SPDX-License-Identifier: Apache-2.0
// Aggregation: many small calls to one rank in one message.
#pragma once

#include <chrono>
#include <cstddef>

#include "sojourn/detail/marshalled.hpp"

namespace sojourn {

/// Sizes and ages of bundles. A bundle of calls to one rank is sent when it is full; when it is
/// older than `age` and its sender looks at its messages; when its sender has nothing else to do;
/// before anything else that its sender sends to that rank; at the end of a `finish`; and at
/// `flush`.
struct aggregation {
  /// Bytes of a full bundle, headers included: 256 to 1 MiB.
  std::size_t bytes = 8192 - 64;
  std::chrono::nanoseconds age = std::chrono::microseconds(50);
};

/// While an `aggregated` object lives, this rank bundles what its fibers send without waiting for
/// an answer: rpc_ff and ff (of global_ptr) whose arguments take at most 512 bytes, and one-sided
/// stores and atomic additions to ranks whose heap is not shared. Calls from one rank to another
/// run in the order in which they were made, bundled or not. A function that is called in a bundle
/// keeps its frames on its rank: `via::migrate` in it, outside an activation, is an rpc. The fiber
/// that made this object stays on its rank. Such objects nest: the sizes of the innermost one
/// apply. SOJOURN_AGGREGATE=on does the same for a whole run. Memory: `bytes` for each destination.
/// Calls of a rank to itself are bundled too.
/// Suspends: in the destructor, when the way to a rank is full. A call that finds its bundle full
/// first lets messages that have arrived run. Errors: sojourn::error when a size is out of range.
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
