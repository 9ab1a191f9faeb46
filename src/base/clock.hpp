// SPDX-License-Identifier: Apache-2.0
// Where time comes from. All readings of the clock (now_ns), all conversions to and from it
// (sojourn/detail/times.hpp) and all sleeps until a time are made in clock.cpp, so that a test can
// put a clock of its own in place of the system's. Only ticks() is compiled into its callers.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

/// Sleeps while `word` has `value`, but at most until now_ns() has reached `deadline_ns`; returns
/// whether it has. May also return early. Ends the process when the system refuses.
bool sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t deadline_ns);
/// Wakes one thread that sleeps on `word`, in this process or in another one that shares the word.
void wake_sleeper_on(std::atomic<std::uint32_t>& word);

/// Sleeps until poll(2) finds something at one of these descriptors, but at most until now_ns() has
/// reached `deadline_ns`; returns whether it has. May also return early.
bool sleep_on(std::span<pollfd> descriptors, std::uint64_t deadline_ns);

/// Nanoseconds since some fixed moment, by ticks(), which takes a third of the time of now_ns(). To
/// measure how long something takes on a rank, not to tell the time. Off by less than a thousandth.
/// The ticks of another core may be behind, so a difference may come out negative.
class tick_clock {
 public:
  /// Finds out how long a tick is, which takes 0.2 ms.
  tick_clock();
  std::uint64_t ns() const {
    return static_cast<std::uint64_t>(static_cast<unsigned_128>(ticks()) * ns_per_tick_ >> 32);
  }
  /// The time that has passed since an earlier ns(); 0 if it came out negative.
  std::uint64_t since(std::uint64_t earlier_ns) const {
    const std::uint64_t now = ns();
    return now > earlier_ns ? now - earlier_ns : 0;
  }

 private:
  __extension__ using unsigned_128 = unsigned __int128;
  std::uint64_t ns_per_tick_;  ///< Nanoseconds of a tick, in units of 2^-32.
};

/// While such an object exists, the process uses its clock instead of the system's. It stands still
/// except for advance() and for sleeps, which end at once and set it to their deadlines. For tests
/// in one process, of which only one thread asks for the time. std::chrono::steady_clock is not
/// replaced, so a test should sleep for a span, not until a time. Only one may exist at a time.
class test_clock {
 public:
  explicit test_clock(std::uint64_t start_ns);
  ~test_clock();
  test_clock(const test_clock&) = delete;
  test_clock& operator=(const test_clock&) = delete;

  void advance(std::uint64_t ns);
};

}  // namespace sojourn::detail
