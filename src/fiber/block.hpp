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

/// Suspends the running stack and runs `action`, which must call block(). Not inline if a mark is
/// open: the mark's older side may then go on directly, without a switch to the scheduler's stack.
resumed leave_under_mark(leave_action action, void* context);
[[gnu::always_inline]] inline resumed leave_to_wait(leave_action action, void* context) {
  if (running.youngest != nullptr || may_have_forks()) return leave_under_mark(action, context);
  return leave(action, context);
}

/// block() for a piece that may have open marks.
piece* block_below_mark(piece* left);
/// To be called by an action, for the piece that left and must wait. If a fork is open in the
/// piece, cuts it at the youngest fork: makes the older side the next to run, and returns the
/// younger part, which waits. Otherwise returns the whole piece (docs/internals/cutting.md).
inline piece* block(piece* left) {
  if (left->youngest == nullptr && !left->has_forks && running.watched == 0) [[likely]]
    return left;
  return block_below_mark(left);
}

/// True when the youngest open mark of the running piece is a fork's and lies in a frame, and the
/// fork's older side can go on here when the younger side has gone.
bool younger_may_go();
/// Cuts the running piece at that mark. Runs below its frames, which have been made resumable at
/// `sp`. `action` takes the younger part, and returns true when that has left this rank. The older
/// side goes on directly, without a switch to the scheduler's stack. Requires: younger_may_go().
[[noreturn]] void go_on_without_younger(bool (*action)(piece* younger, void* context),
                                        void* context, std::uint64_t sp);

/// The youngest open mark of the running piece, if any; and the youngest fork.
boundary youngest_boundary();
boundary youngest_open_fork();
/// True when the running piece would be cut if it blocked, so that its older side has work
/// meanwhile.
bool someone_goes_on_if_blocked();

/// Suspends the running fiber behind all that are ready.
void give_turn();
/// Called once by the next fiber that gives its turn, on its stack. A signal handler that finds the
/// rank in its dispatcher may set this, to find out which fiber keeps the dispatcher busy.
extern std::atomic<void (*)()> at_next_turn;

}  // namespace sojourn::detail
