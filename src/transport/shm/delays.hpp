// SPDX-License-Identifier: Apache-2.0
// SOJOURN_DELAY: a test mode in which a rank leaves messages that have arrived in their rings for a
// while. Each ring is held on its own, for random times that follow from a seed, so that whatever
// the contract does not order arrives in another order: requests and replies, messages of different
// ranks, and what a rank sends to itself. Within a ring the order stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace sojourn::detail::shm {

class delays {
 public:
  struct ring;
  static std::size_t memory_bytes(std::size_t rings);
  /// For the rings to `rank`, numbered 0 to `rings` - 1. Requires: `memory` has
  /// memory_bytes(rings) bytes.
  delays(std::uint64_t seed, int rank, std::size_t rings, void* memory);

  /// The seed that SOJOURN_DELAY gives; false when it is not set. Throws sojourn::error.
  static bool seed_from_environment(std::uint64_t& seed);

  /// Whether the ring's first message must wait. Requires: there is one. Its delay begins when this
  /// is first asked.
  bool holds(std::size_t ring, std::uint64_t now_ns);
  /// The ring's first message is delivered: the next one has a delay of its own.
  void passed(std::size_t ring);

  /// A random number below `below`: where a poll begins.
  std::size_t any(std::size_t below) { return random_() % below; }

 private:
  std::minstd_rand random_;
  ring* rings_;
};

struct delays::ring {
  std::uint32_t hold_one_in;
  std::uint32_t longest_ns;
  std::uint64_t random;
  std::uint64_t until_ns;
  bool looked_at;  // its first message has a delay already
};

}  // namespace sojourn::detail::shm
