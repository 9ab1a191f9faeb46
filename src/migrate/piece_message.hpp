// SPDX-License-Identifier: Apache-2.0
// What a message with a piece holds, and a piece's arrival.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber/piece.hpp"
#include "message/dispatcher.hpp"

namespace sojourn::detail {

class message_reader;

/// From this size on, the receiver reads a piece straight from the suspended stack: one copy, by
/// a system call, instead of two.
inline constexpr std::size_t read_from_bytes = 32u << 10;

/// What a message with a piece holds before the bytes themselves. The message's ticket is the
/// piece's result.
struct piece_header {
  std::uint64_t sp;
  const void* base;
  mark* youngest;
  fp_control fp;
  child_result returns;
  bool has_forks;
  std::uint64_t called_from;
};

/// A piece on its way out.
struct departure {
  piece* leaving;
  int to;
  scope_ticket scope;  ///< Weight that goes along, when the piece counts in a finish scope.
};

piece_header header_of(const piece* p);
/// Bytes of the tail: what follows the frames in a message when the piece belongs to a thread or a
/// finish scope.
std::size_t tail_bytes(const piece* p);
/// Writes the tail; returns the message's flags.
std::uint16_t write_tail(const departure& d, std::byte* room);
/// Takes the tail from the end of a message.
void read_tail(piece* p, const arrival& a, message_reader& from);
/// Fills in a piece that has arrived, except its bytes and what the tail says. Ends the rank when
/// these bytes do not belong in a stack.
void describe_arrival(piece* p, const arrival& a, const piece_header& header, std::size_t bytes);
/// Where the bytes of `p` are to be copied. Call filled() once they are. `announced`:
/// on_migrate.base.announced was called for the piece.
std::byte* room_for_arrival(piece* p);
void filled(piece* p, int source, bool announced = false);

}  // namespace sojourn::detail
