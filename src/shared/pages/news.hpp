// SPDX-License-Identifier: Apache-2.0
// What a rank tells another before every message that lets a fiber go on there: a call, an answer,
// a fiber that moves. Sending such a message is a release and receiving it an acquire, so the write
// notices that its receiver may lack go before it.
//
// A message may come from a rank that has left a barrier which its receiver has not left: the
// departure is still on its way. The news then hold what the departure holds, and the receiver
// departs by them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shared/pages/barriers.hpp"
#include "shared/pages/exchange.hpp"

namespace sojourn::detail::pages {

/// What kind of message news go before. Messages from one rank to another keep their order among
/// requests, and among replies, but a request and a reply may change places.
enum class ordered_with : std::uint8_t { requests, replies };

class news {
 public:
  news(exchange& x, barriers& b);

  /// Whether `to` may lack a closed interval that this rank knows, or may not have left the last
  /// barrier.
  bool any(int to, ordered_with with);
  /// Begins a message in exchange::out with all that `to` may lack.
  void write(int to, ordered_with with);
  /// Notes that what write() has written is on its way to `to`.
  void told(int to, ordered_with with);

  void receive(page_message_reader& from, const message_head& head);
  /// Notes that `from` has entered this epoch, as a message of it says.
  void heard(int from, std::uint32_t epoch) {
    peer& p = of(from);
    for (std::uint32_t& known : p.epoch) known = std::max(known, epoch);
  }

  /// Notes that `rank` knows these intervals, because it has told of an interval that happened
  /// after them.
  void knows(int rank, std::span<const interval> clock) {
    for (vector_clock& told : of(rank).told) take_later(told, clock);
  }

 private:
  struct peer {
    explicit peer(std::size_t ranks, std::pmr::memory_resource* memory)
        : told{vector_clock(ranks, 0, memory), vector_clock(ranks, 0, memory)} {}
    // The epoch that the rank has entered, and what it knows, when it gets this rank's next request
    // (or reply).
    std::array<std::uint32_t, 2> epoch{};
    std::array<vector_clock, 2> told;
    // The value of interval_log::changes() when the rank lacked nothing.
    std::array<std::uint64_t, 2> lacks_nothing{};
  };

  peer& of(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  bool may_lag(int to, ordered_with with) const {
    return peers_[static_cast<std::size_t>(to)].epoch[static_cast<std::size_t>(with)] < x_.epoch;
  }
  void forget_what_all_know(int to, ordered_with with);

  exchange& x_;
  barriers& barriers_;
  std::pmr::vector<peer> peers_;
};

}  // namespace sojourn::detail::pages
