// SPDX-License-Identifier: Apache-2.0
// Reading memory of another rank by messages, where no rank may read it itself: some parts are
// asked for ahead, and each is received where it belongs.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

/// Parts that have been asked for and not taken, the oldest first.
class parts_in_flight {
 public:
  /// What is read lies from `to` on.
  explicit parts_in_flight(const void* to);

  bool are_many() const { return count_ == most; }
  bool are_none() const { return count_ == 0; }
  /// The result of `ticket` belongs to `to`. Requires: they are not many.
  void add(ticket_id ticket, std::byte* to, std::size_t bytes);
  /// Suspends until the oldest is there. Throws what came instead of it.
  void take_oldest();
  /// After an exception: suspends until nothing more is written to where they belong.
  void settle();
  /// How often each byte is copied on this rank.
  std::size_t copies() const { return land_ ? 1 : 2; }

 private:
  static constexpr std::size_t most = 4;
  struct part {
    ticket_id ticket;
    std::byte* to;
    std::size_t bytes;
  };
  part take_first();

  bool land_;
  part parts_[most];
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

/// `ask(offset, n)` sends the question for the n bytes at this offset, and returns the ticket of
/// the answer. Throws what comes instead of an answer.
template <class Ask>
void read_in_parts(std::byte* to, std::size_t bytes, std::size_t at_once, Ask ask) {
  parts_in_flight flying(to);
  try {
    for (std::size_t next = 0; next < bytes;) {
      if (flying.are_many()) flying.take_oldest();
      const std::size_t n = std::min(bytes - next, at_once);
      flying.add(ask(next, n), to + next, n);
      next += n;
    }
    while (!flying.are_none()) flying.take_oldest();
  } catch (...) {
    flying.settle();
    throw;
  }
}

}  // namespace sojourn::detail
