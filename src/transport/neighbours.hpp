// SPDX-License-Identifier: Apache-2.0
// What a rank reads and writes of other ranks without a message. That works among the ranks of one
// host, which share the job's segment and one clock (now_ns()); code that uses it must have another
// way for ranks of other hosts.
#pragma once

#include <atomic>
#include <cstdint>

#include "sojourn/detail/counts.hpp"

namespace sojourn::detail {

/// The ranks of this rank's host, this one included. The floor that knows the segment implements
/// it.
class neighbours {
 public:
  virtual ~neighbours() = default;

  virtual bool include(int rank) const = 0;
  /// The page of counts of a rank, which is in the segment from that rank's start on. What other
  /// ranks write there they write with atomics. Requires: include(rank).
  virtual counts_page& counts_of(int rank) const = 0;

  /// How many ranks of the whole job have been lost, as far as this host knows: grows, and a rank
  /// that sleeps is woken then. At the same place as long as the job runs.
  virtual const std::atomic<std::uint32_t>& losses() const = 0;
  /// Whether a rank of the whole job is lost. Correct for all ranks that losses() counts.
  virtual bool lost(int rank) const = 0;

  /// For the rank that was the last to fall asleep: true when it is proven that nothing will happen
  /// in the whole job any more.
  virtual bool nothing_can_happen() const = 0;

  /// Interrupts the thread in which a rank computes, so that dispatcher_hooks::interrupted is
  /// called there. False when that rank sleeps, so that a message has woken it or will, and where
  /// it cannot be interrupted: before it has begun, after its end, or because the program handles
  /// SIGURG.
  virtual bool interrupt(int rank) const = 0;
};

/// Requires: attach_neighbours.
const neighbours& near_ranks();
/// `all` stays as long as the process.
void attach_neighbours(const neighbours& all);

}  // namespace sojourn::detail
