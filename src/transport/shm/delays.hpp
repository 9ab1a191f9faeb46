// SPDX-License-Identifier: Apache-2.0
// SOJOURN_DELAY: a test mode in which a rank leaves messages that have arrived in their rings for a
// while. Each ring is held on its own, for random times that follow from a seed, so that whatever
// the contract does not order arrives in another order: requests and replies, messages of different
// ranks, and what a rank sends to itself. In a ring nothing changes places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace sojourn::detail::shm {

class delays {
 public:
  /// For the rings to `rank`, numbered 0 to `rings` - 1. Requires: the region is mapped, or the
  /// caller gives `memory` for that many of them.
  struct ring;
  static std::size_t memory_bytes(std::size_t rings);
  delays(std::uint64_t seed, int rank, std::size_t rings, void* memory);

  /// The seed that SOJOURN_DELAY gives; false when it is not set. Throws sojourn::error.
  static bool seed_from_environment(std::uint64_t& seed);

  /// Whether the first message of the ring, which is there, is left there now. Its time begins with
  /// the first look at it.
  bool holds(std::size_t ring, std::uint64_t now_ns);
  /// The first message of the ring is delivered: the one behind it has a time of its own.
  void passed(std::size_t ring);

  /// A number below `below`: where a round of looks begins.
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
  bool looked_at;  // at its first message
};

}  // namespace sojourn::detail::shm
