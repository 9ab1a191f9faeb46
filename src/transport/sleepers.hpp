// SPDX-License-Identifier: Apache-2.0
// What others than the transport itself need of its memory: the code that starts a job asks how
// much it takes; the launcher, and the code that explains a hang, ask which ranks sleep, and wake
// them.
#pragma once

#include <cstddef>

namespace sojourn::detail {

/// How much of the segment of a host the transport takes, for a job of `ranks` ranks of which
/// `near` are on this host. Zeroed memory is a valid start.
std::size_t transport_bytes(int ranks, int near);
inline std::size_t transport_bytes(int ranks) { return transport_bytes(ranks, ranks); }

/// Which ranks of this host sleep. For any process that has mapped the segment. A rank of another
/// host counts as asleep, and nothing wakes it from here.
class sleepers {
 public:
  /// Of nobody; to be assigned to.
  sleepers() = default;
  /// `transport_memory`: the transport's part of the segment.
  explicit sleepers(std::byte* transport_memory) : memory_(transport_memory) {}

  /// True from before the rank falls asleep (transport::wait) until it is woken: one that is about
  /// to run is not asleep.
  bool is_asleep(int rank) const;
  /// Wakes a rank that is asleep. True when it was. A rank that falls asleep at the same time looks
  /// for work after it has become asleep, so no wake is lost.
  bool wake(int rank) const;

 private:
  std::byte* memory_ = nullptr;
};

}  // namespace sojourn::detail
