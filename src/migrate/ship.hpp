// SPDX-License-Identifier: Apache-2.0
// Stretches of stack on their way between ranks: which may leave, what is sent, and what happens
// where they arrive. (CUT: What may travel.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// Register the handlers of this floor.
void attach_migration();

/// Why a stretch stays where it is; null when it may leave. `hi` is its older end: pieces younger
/// than the mark there travel. Requires: `p` has just been suspended.
const char* reason_to_stay(const piece* p, const mark* oldest, std::uint64_t hi);

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
