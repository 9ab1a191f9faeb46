// SPDX-License-Identifier: Apache-2.0
// Whether a rank that waits yields its core before it sleeps.
//
// Ranks that share a core and wait for each other switch fastest when they yield. But a rank that
// yields to something that computes has given its share of the core away: it runs again a
// millisecond or more later, even if its message came at once. A rank that sleeps is woken by the
// message and mostly runs immediately. So a rank that sees a long yield sleeps without yielding for
// a number of waits, and for twice as many when the next yield is long again. (Four ranks on two
// cores pass a call on and on, beside a busy loop for each core: 750 calls a second with 60 yields
// before each sleep, 80,000 without yields; alone, 150,000 with yields and 110,000 without.)
#pragma once

#include <algorithm>
#include <cstdint>

namespace sojourn::detail::shm {

class yielding {
 public:
  /// A yield of this length is long. Longer than ranks that wait for each other run before they
  /// yield in turn; shorter than the time for which the system lets a program compute.
  static constexpr std::uint64_t long_ns = 300'000;
  static constexpr unsigned first_pause = 64;
  static constexpr unsigned longest_pause = 4096;
  /// After so many yields that were not long, what was seen before is forgotten.
  static constexpr unsigned quick_until_forgotten = 1000;

  /// A wait begins. Returns false when this wait is to be without yields.
  bool begin_wait() {
    if (pause_left_ == 0) return true;
    --pause_left_;
    return false;
  }
  /// A yield has taken so long. Returns false when this wait should not yield any more.
  bool yielded(std::uint64_t ns) {
    if (ns < long_ns) [[likely]] {
      if (++quick_ >= quick_until_forgotten) next_pause_ = first_pause;
      return true;
    }
    quick_ = 0;
    pause_left_ = next_pause_;
    next_pause_ = std::min(2 * next_pause_, longest_pause);
    return false;
  }

 private:
  unsigned pause_left_ = 0;
  unsigned next_pause_ = first_pause;
  unsigned quick_ = 0;
};

}  // namespace sojourn::detail::shm
