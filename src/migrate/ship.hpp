// SPDX-License-Identifier: Apache-2.0
// Stretches of stack on their way between ranks: which may leave, what is sent, and what happens
// where they arrive. (CUT: What may travel.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber/piece.hpp"
#include "sojourn/thread.hpp"

namespace sojourn::detail {

/// Register the handlers of this floor.
void attach_migration();

/// Why frames do not leave their rank.
struct stay_reason {
  thread_refusal kind;
  const char* text;
};

/// Why a stretch stays where it is; null when it may leave. `hi` is its older end: pieces younger
/// than the mark there travel. Requires: `p` has just been suspended.
const stay_reason* reason_to_stay(const piece* p, const mark* oldest, std::uint64_t hi);
/// The same for a whole piece, also one that is an image: reads nothing of its frames.
const stay_reason* reason_whole_stays(const piece* p);

/// Looks at the frames of a whole suspended piece, which is in place, and sends it to `to`.
/// Requires: it may leave, and whatever it waits for has forgotten it. Called on the scheduler's
/// stack, or below the frames.
void send_whole(piece* p, int to);

/// What a message with a piece holds before the bytes themselves. The message's ticket is the
/// piece's result.
struct piece_header {
  std::uint64_t sp;
  const void* base;
  mark* youngest;
  fp_control fp;
  std::uint32_t methods;  ///< piece::methods, which the marks inside were counted from.
};

}  // namespace sojourn::detail
