// SPDX-License-Identifier: Apache-2.0
// The stacks of handlers. One is kept for the next handler, the *spare*: a handler that returns
// leaves it for the next one. A handler that blocks keeps the stack and is a fiber from then on,
// and another stack becomes the spare. If there are too many such fibers, few stacks are left: then
// the next handler runs on the stack of the last fiber.
#pragma once

#include <cstddef>

#include "fiber/piece.hpp"

namespace sojourn::detail {

struct spare_stacks_state {
  piece* spare = nullptr;  ///< The stack for the next handler; it is no fiber. May be null.
  std::size_t fibers_resident = 0;  ///< Fibers that keep a slot of this rank (piece::keeps_slot).
};
extern spare_stacks_state spare_stacks;

/// The piece of the stack that is kept for the next handler. May be null.
inline const piece* spare_piece() { return spare_stacks.spare; }

/// A piece on a stack of its own, for a handler.
piece* make_spare();
/// Makes a stack the spare whose slot no other rank reads, and returns it.
piece* another_spare();
/// The stack on which the next handler runs.
[[gnu::always_inline]] inline piece* ready_spare() {
  if (spare_stacks.spare == nullptr) spare_stacks.spare = make_spare();
  piece* p = spare_stacks.spare;
  if (slots[p->slot].being_read != 0) [[unlikely]]
    p = another_spare();
  return p;
}

/// Where the call comes from that a handler answers.
struct call_origin {
  int rank = no_rank;    ///< no_rank when a handler answers no call.
  ticket_id answer = 0;  ///< The ticket of the result there; 0 when none is wanted.
};

/// To be called when the handler that runs on the spare, `p`, blocks: makes it a fiber.
void become_fiber(piece* p, const call_origin& origin);

/// Gives back the slot of a fiber that keeps it and has ended or left this rank.
inline void release_stack(const piece* p) {
  --spare_stacks.fibers_resident;
  slots.release(p->slot);
}
/// Counts a fiber of this rank that came back from a checkpoint.
inline void restore_resident() { ++spare_stacks.fibers_resident; }

/// True when no other computation can take the place of the frames of the running one, whatever it
/// waits for.
bool running_keeps_its_stack();

/// How many pieces are on this rank and have not finished.
inline std::size_t fibers_unfinished() { return pieces_in_use - (spare_stacks.spare != nullptr); }

}  // namespace sojourn::detail
