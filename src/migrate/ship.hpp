// SPDX-License-Identifier: Apache-2.0
// Sending pieces to other ranks: activations, which end at their marks, and whole pieces. gate.hpp
// says which of them may leave, docs/internals/cutting.md how a stack is cut.
#pragma once

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// Registers the handler of pieces that arrive.
void attach_ship();

/// Sends the whole suspended piece, which is in place, to `to`, and scans its frames. Returns true
/// when the piece has been retired. Otherwise it must stay as it is, in place or an image, until it
/// is retired. Requires: the piece may leave, and nothing will wake it any more. Called on the
/// scheduler's stack, or below the frames.
bool send_whole(piece* p, int to);

}  // namespace sojourn::detail
