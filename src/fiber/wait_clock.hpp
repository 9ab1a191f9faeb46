// SPDX-License-Identifier: Apache-2.0
// Records since when pieces wait, for reports. Reading the clock takes as long as forty
// instructions: so all pieces that begin to wait in one round of the dispatcher share one reading,
// at the end of the round.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fiber/piece.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

class wait_clock {
 public:
  /// `p` begins to wait. Until this round ends, the time noted for it is that of an earlier round,
  /// plus a little. No two waits of a piece have the same time, so reports can tell whether the
  /// piece has run between them.
  void begins(piece* p) {
    p->since = ++latest_;
    if (count_ == pieces_.size()) look();
    pieces_[count_++] = p;
  }
  void end_round() {
    if (count_ != 0) look();
  }

 private:
  /// Also sets the time of pieces that no longer wait, which nobody reads. Their descriptors exist,
  /// because descriptors are never given back.
  void look() {
    latest_ = ticks();
    for (; count_ != 0; --count_) pieces_[count_ - 1]->since = latest_;
  }

  std::uint64_t latest_ = ticks();
  std::size_t count_ = 0;
  std::array<piece*, 64> pieces_;
};
inline wait_clock wait_times;

}  // namespace sojourn::detail
