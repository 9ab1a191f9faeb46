// SPDX-License-Identifier: Apache-2.0
// How a stack blocks. If no fork is open in it, all of it leaves to wait. Otherwise it is cut at
// its youngest fork: what is younger waits, and the older side goes on
// (docs/internals/cutting.md).
#pragma once

#include <atomic>

#include "fiber/boundary.hpp"
#include "fiber/scheduler.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

/// Leaves to wait; `action` must call block(). If a mark is open this is not inline: the mark's
/// older side may then go on directly, without a switch to the scheduler's stack.
resumed leave_under_mark(leave_action action, void* context);
[[gnu::always_inline]] inline resumed leave_to_wait(leave_action action, void* context) {
  if (running.youngest != nullptr || may_have_forks()) return leave_under_mark(action, context);
  return leave(action, context);
}

/// block() for a piece that may have open marks.
piece* block_below_mark(piece* left);
/// To be called by an action when the piece that left must wait. If a fork is open in the piece,
/// cuts it at the youngest: the older side is the next to run, and the younger part, which waits,
/// is returned. Otherwise returns the whole piece (docs/internals/cutting.md).
inline piece* block(piece* left) {
  if (left->youngest == nullptr && !left->has_forks && running.watched == 0) [[likely]]
    return left;
  return block_below_mark(left);
}

/// True when the youngest open mark of the running piece is a fork's and lies in a frame, and the
/// fork's older side can go on here when the younger side has gone.
bool younger_may_go();
/// Cuts the running piece at that mark, from below its frames, which have been made resumable at
/// `sp`. `action` takes the younger part, and returns true when it has left this rank. The older
/// side goes on directly, without a switch to the scheduler's stack. Requires: younger_may_go().
[[noreturn]] void go_on_without_younger(bool (*action)(piece* younger, void* context),
                                        void* context, std::uint64_t sp);

/// The youngest open mark of the running piece, if any; and the youngest fork.
boundary youngest_boundary();
boundary youngest_open_fork();
/// True when the running piece would be cut if it blocked, so that somebody has work meanwhile.
bool someone_goes_on_if_blocked();

/// Suspends the running fiber behind all that are ready.
void give_turn();
/// Called once, on its stack, by the next fiber that gives its turn. A signal handler that finds
/// the rank in its dispatcher may set it, to find the fiber that keeps the rank there.
extern std::atomic<void (*)()> at_next_turn;

}  // namespace sojourn::detail
