// SPDX-License-Identifier: Apache-2.0
// Since when pieces wait, for reports. A look at the clock takes as long as forty instructions:
// those that begin to wait in one round of the dispatcher share one, at its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fiber/piece.hpp"
#include "sojourn/clock.hpp"

namespace sojourn::detail {

class wait_clock {
 public:
  /// `p` begins to wait; before the end of this round, its time is that of an earlier one. No two
  /// waits of a piece have the same: reports tell by it whether one has gone on meanwhile.
  void begins(piece* p) {
    p->since = ++latest_;
    if (count_ == pieces_.size()) look();
    pieces_[count_++] = p;
  }
  void end_round() {
    if (count_ != 0) look();
  }

 private:
  /// Of one that waits no more, nobody reads the time. Descriptors are never given back.
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
