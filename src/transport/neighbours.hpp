// SPDX-License-Identifier: Apache-2.0
// What a rank reads and writes of other ranks without a message. Only the ranks of one host can do
// so: they share the job's segment and one clock (now_ns()). Code that uses this must have another
// way for ranks of other hosts.
#pragma once

#include <atomic>
#include <cstdint>

#include "sojourn/detail/counts.hpp"

namespace sojourn::detail {

/// The ranks of this rank's host, this one included. Implemented by the floor that knows the
/// segment.
class neighbours {
 public:
  virtual ~neighbours() = default;

  virtual bool include(int rank) const = 0;
  /// The page of counts of a rank, which is in the segment from that rank's start on. Other ranks
  /// write to the page with atomics. Requires: include(rank).
  virtual counts_page& counts_of(int rank) const = 0;

  /// How many ranks of the whole job have been lost, as far as this host knows. When the number
  /// grows, ranks that sleep are woken. The reference is valid as long as the job runs.
  virtual const std::atomic<std::uint32_t>& losses() const = 0;
  /// Whether a rank of the whole job is lost. Correct for all ranks that losses() counts.
  virtual bool lost(int rank) const = 0;

  /// For the rank that was the last to fall asleep: true when it is proven that nothing will happen
  /// in the whole job any more.
  virtual bool nothing_can_happen() const = 0;

  /// Interrupts the thread in which a rank computes, so that it calls
  /// dispatcher_hooks::interrupted. Returns false when the rank sleeps (a message has woken it
  /// then, or will), and when it cannot be interrupted: before it has begun, after its end, or
  /// because the program handles SIGURG.
  virtual bool interrupt(int rank) const = 0;
};

/// Requires: attach_neighbours.
const neighbours& near_ranks();
/// `all` must live as long as the process.
void attach_neighbours(const neighbours& all);

}  // namespace sojourn::detail
