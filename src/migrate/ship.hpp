// SPDX-License-Identifier: Apache-2.0
// Stretches of stack on their way between ranks: which may leave, what is sent, and what happens
// where they arrive. (CUT: What may travel.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber/piece.hpp"
#include "message/dispatcher.hpp"
#include "sojourn/thread.hpp"

namespace sojourn::detail {

class message_reader;

/// Register the handlers of this floor.
void attach_migration();

/// Why frames do not leave their rank.
struct stay_reason {
  thread_refusal kind;
  const char* text;
};

/// Why the frames of `p` that are younger than `oldest`, or all when that is none, stay where they
/// are; null when they may leave. Requires: `p` has just been suspended.
const stay_reason* reason_to_stay(const piece* p, const boundary& oldest);
/// The same for a whole piece, also one that is an image: reads nothing of its frames.
const stay_reason* reason_whole_stays(const piece* p);

/// Looks at the frames of a whole suspended piece, which is in place, and sends it to `to`.
/// True when it is retired; else it is to stay as it is, in place or an image, until it is.
/// Requires: it may leave, and whatever it waits for has forgotten it. Called on the scheduler's
/// stack, or below the frames.
bool send_whole(piece* p, int to);

/// Longer stretches are read by the receiver, straight from the suspended stack: one copy, for
/// which the system is asked, instead of two.
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
/// What follows the frames in a message, for a thread and in a finish scope.
std::size_t tail_bytes(const piece* p);
/// Writes it; returns the message's flags.
std::uint16_t write_tail(const departure& d, std::byte* room);
/// Takes it from the end of a message.
void read_tail(piece* p, const arrival& a, message_reader& from);
/// Fills in a piece that has come but for its bytes and what the tail says. Ends the rank when they
/// do not belong in a stack.
void describe_arrival(piece* p, const arrival& a, const piece_header& header, std::size_t bytes);
/// Where its bytes are to be copied; to be followed by filled() when they are. `announced`: home
/// was told before that it comes (base_announced).
std::byte* room_for_arrival(piece* p);
void filled(piece* p, int source, bool announced = false);

}  // namespace sojourn::detail
