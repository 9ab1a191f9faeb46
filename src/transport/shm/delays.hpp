// SPDX-License-Identifier: Apache-2.0
// SOJOURN_DELAY: a rank leaves messages that have arrived in their rings for a while. The order
// within a ring stays.
//
//   SEED                    a test mode: each ring is held on its own, for random times that follow
//                           from the seed, so that whatever the contract does not order arrives in
//                           another order: requests and replies, messages of different ranks, and
//                           what a rank sends to itself
//   200us, 200us:50us,      the way takes so long: a message from another rank is delivered when
//   200us:50us:7            200 us have passed since it was sent, and up to 50 us more, which
//                           follow from the seed 7 [1]. As on a wire, many are on their way
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail::shm {

/// What SOJOURN_DELAY says.
struct delay_setting {
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> way_ns{};  ///< Nothing: the test mode.
  std::uint64_t jitter_ns = 0;

  /// Nothing when SOJOURN_DELAY is not set. Throws sojourn::error.
  static std::optional<delay_setting> from_environment();
};

class delays {
 public:
  struct ring;
  static std::size_t memory_bytes(std::size_t rings);
  /// `rings`: those to `rank`. Rings 2r and 2r + 1 come from rank r; the last one stands for what
  /// `rank` sends to itself without a ring. Requires: `memory` has memory_bytes(rings) bytes.
  delays(const delay_setting& by, int rank, std::size_t rings, void* memory);

  /// The time of sending, as it stands in a message's header: 32 bits, rounded up.
  static std::uint32_t stamp(std::uint64_t now_ns) {
    return static_cast<std::uint32_t>((now_ns + tick_ns - 1) / tick_ns);
  }

  /// The time from which the ring's first message, which was sent at `sent`, may be delivered.
  /// Requires: there is one. In the test mode its delay begins at the first call of this.
  std::uint64_t due(std::size_t ring, std::uint32_t sent, std::uint64_t now_ns);
  /// The ring's first message has been delivered: the next one gets a delay of its own.
  void passed(std::size_t ring);

  /// How long the way takes, jitter included; 0 in the test mode.
  std::uint64_t way_ns() const { return by_.way_ns.value_or(0) + by_.jitter_ns; }
  bool is_test_mode() const { return !by_.way_ns; }

  /// A random number below `below`: where a poll begins.
  std::size_t any(std::size_t below) { return random_() % below; }

 private:
  /// The unit of times in headers, which therefore repeat after 274 s. A message that a rank leaves
  /// for more than half of that looks as if it had been sent later than now; it waits for a second
  /// more.
  static constexpr std::uint64_t tick_ns = 64;

  delay_setting by_;
  std::minstd_rand random_;
  ring* rings_;
};

struct delays::ring {
  std::uint32_t hold_one_in;  // 0: it holds no messages
  std::uint32_t longest_ns;
  std::uint64_t random;
  std::uint64_t until_ns;
  bool looked_at;  // whether the first message has a delay already
};

}  // namespace sojourn::detail::shm
