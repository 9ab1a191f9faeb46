// SPDX-License-Identifier: Apache-2.0
// Sending pieces to other ranks: activations by their marks, and whole pieces.
// Which may leave: gate.hpp. How a stack is cut: docs/internals/cutting.md.
#pragma once

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// Registers the handler of pieces that arrive.
void attach_ship();

/// Sends the whole suspended piece, which is in place, to `to`, and scans its frames. True when the
/// piece is retired; otherwise it must stay as it is, in place or an image, until that happens.
/// Requires: the piece may leave, and whatever it waits for has forgotten it. Called on the
/// scheduler's stack, or below the frames.
bool send_whole(piece* p, int to);

}  // namespace sojourn::detail
