// SPDX-License-Identifier: Apache-2.0
// What others than the transport itself need of its memory: the code that starts a job asks how
// much it takes; the launcher, and the code that explains a hang, ask which ranks sleep, and wake
// them.
#pragma once

#include <cstddef>

namespace sojourn::detail {

/// How much of the job's segment the transport takes, for `ranks` ranks of this host. Zeroed memory
/// is a valid start.
std::size_t transport_bytes(int ranks);

/// Which ranks of this host sleep. For any process that has mapped the segment.
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
