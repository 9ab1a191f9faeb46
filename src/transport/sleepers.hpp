// SPDX-License-Identifier: Apache-2.0
// What other parts need to know of the transport's memory: the code that starts a job asks how many
// bytes it takes; the launcher, and the code that explains a hang, ask which ranks sleep, and wake
// them.
#pragma once

#include <cstddef>

namespace sojourn::detail {

/// How many bytes of a host's segment the transport takes, for a job of `ranks` ranks of which
/// `near` are on this host. The memory must be zeroed at first.
std::size_t transport_bytes(int ranks, int near);
inline std::size_t transport_bytes(int ranks) { return transport_bytes(ranks, ranks); }

/// Which ranks of this host sleep. Works in any process that has mapped the segment. A rank of
/// another host counts as asleep, and cannot be woken from here.
class sleepers {
 public:
  /// Knows no ranks; to be assigned to.
  sleepers() = default;
  /// `transport_memory`: the transport's part of the segment.
  explicit sleepers(std::byte* transport_memory) : memory_(transport_memory) {}

  /// True from before the rank falls asleep (transport::wait) until it is woken, even if it does
  /// not run yet then.
  bool is_asleep(int rank) const;
  /// Wakes a rank that is asleep. Returns whether it was. A rank that falls asleep at the same time
  /// looks for work after it has become asleep, so no wake is lost.
  bool wake(int rank) const;

 private:
  std::byte* memory_ = nullptr;
};

}  // namespace sojourn::detail
