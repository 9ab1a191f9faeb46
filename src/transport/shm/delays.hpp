// SPDX-License-Identifier: Apache-2.0
// SOJOURN_DELAY: a rank leaves messages that have arrived in their rings for a while. Within a ring
// the order stays.
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

#include "sojourn/clock.hpp"

namespace sojourn::detail::shm {

/// What SOJOURN_DELAY says.
struct delay_setting {
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> way_ns{};  ///< Nothing: the test mode.
  std::uint64_t jitter_ns = 0;

  /// Nothing when it is not set. Throws sojourn::error.
  static std::optional<delay_setting> from_environment();
};

class delays {
 public:
  struct ring;
  static std::size_t memory_bytes(std::size_t rings);
  /// For the rings to `rank`: 2r and 2r + 1 are those from rank r, and the last one is what `rank`
  /// sends to itself without a ring. Requires: `memory` has memory_bytes(rings) bytes.
  delays(const delay_setting& by, int rank, std::size_t rings, void* memory);

  /// The time in a message's header, of 32 bits: when it is sent, rounded up.
  static std::uint32_t stamp(std::uint64_t now_ns) {
    return static_cast<std::uint32_t>((now_ns + tick_ns - 1) / tick_ns);
  }

  /// From when on the ring's first message, which was sent at `sent`, may be delivered. Requires:
  /// there is one. In the test mode its delay begins when this is first asked.
  std::uint64_t due(std::size_t ring, std::uint32_t sent, std::uint64_t now_ns);
  /// The ring's first message is delivered: the next one has a delay of its own.
  void passed(std::size_t ring);

  /// How long the way takes, jitter included; 0 in the test mode.
  std::uint64_t way_ns() const { return by_.way_ns.value_or(0) + by_.jitter_ns; }
  bool is_test_mode() const { return !by_.way_ns; }

  /// A random number below `below`: where a poll begins.
  std::size_t any(std::size_t below) { return random_() % below; }

 private:
  /// Of the times in headers, which so come again after 274 s. A message that a rank leaves for
  /// half as long looks as if it were to be sent in a second.
  static constexpr std::uint64_t tick_ns = 64;

  delay_setting by_;
  std::minstd_rand random_;
  ring* rings_;
};

struct delays::ring {
  std::uint32_t hold_one_in;  // 0: none
  std::uint32_t longest_ns;
  std::uint64_t random;
  std::uint64_t until_ns;
  bool looked_at;  // its first message has a delay already
};

}  // namespace sojourn::detail::shm
