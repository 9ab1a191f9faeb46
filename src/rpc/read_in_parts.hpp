// SPDX-License-Identifier: Apache-2.0
// Reading memory of another rank by messages, when this rank may not read it itself. Several parts
// are asked for ahead, and each is received where it belongs.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

/// Parts that have been asked for and not taken, the oldest first.
class parts_in_flight {
 public:
  /// `to`: where the first byte belongs.
  explicit parts_in_flight(const void* to);

  bool are_many() const { return count_ == most; }
  bool are_none() const { return count_ == 0; }
  /// Adds a part: the result of `ticket` belongs to `to`. Requires: not are_many().
  void add(ticket_id ticket, std::byte* to, std::size_t bytes);
  /// Suspends until the oldest part is in its place. Throws what came instead of it.
  void take_oldest();
  /// To be called after an exception: suspends until no part will be written to its place any more.
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

/// Reads `bytes` bytes to `to`, in parts of `at_once` bytes. `ask(offset, n)` sends the question
/// for the n bytes at this offset, and returns the ticket of the answer. Throws what comes instead
/// of an answer.
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
