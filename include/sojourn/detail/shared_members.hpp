// SPDX-License-Identifier: Apache-2.0
// Fibers that begin and end to take part in shared::barrier() while a job runs, for programs that
// create their processes one by one (PARMACS). Not for use between the beginning and the end of
// shared::run_threads(), whose threads are those that take part.
//
// At first the main fibers of all ranks take part. How it is used:
//
//   detail::barrier_join();          // the creator, who takes part and is not at the barrier
//   rpc(rank, [] { spawn([] {        // then the new fiber may begin, on any rank
//     detail::barrier_here();        // first: it is one of those who take part
//     shared::barrier(); …
//     detail::barrier_gone();        // last
//   }); });
//
// Why nothing can go wrong in between: rank 0 counts those who take part, and nobody leaves a
// barrier before all of these have arrived. The creator takes part and has not arrived, so no
// barrier can end before barrier_join() has returned, and from then on the new fiber is waited for,
// even before it exists. A fiber that goes has not arrived either, so the barrier that it is missed
// at can end only when rank 0 knows that it is gone.
#pragma once

#include <cstdint>

namespace sojourn::shared::detail {

/// Says that so many more fibers will take part in shared::barrier(). Each of them calls
/// barrier_here() when it begins. Suspends until rank 0 knows (no message on rank 0). Errors:
/// sojourn::error when the running fiber does not take part itself, or while shared::run_threads()
/// runs; rank_lost.
void barrier_join(std::uint32_t fibers = 1);

/// Says that the running fiber is one of those for whom barrier_join() was called. It is a thread
/// (spawn), on any rank, and has not moved; it may move afterwards. Sends nothing, never suspends.
/// Errors: sojourn::error when the fiber is no thread, takes part already, or while
/// shared::run_threads() runs.
void barrier_here();

/// Says that the running fiber, which may be a main fiber, takes part no longer, so that the others
/// do not wait for it. Called where the fiber began. Suspends until rank 0 knows (no message on
/// rank 0). Errors: sojourn::error when the fiber does not take part, has moved, or while
/// shared::run_threads() runs; rank_lost.
void barrier_gone();

/// As shared::barrier(), but returns false when a fiber was missing at this barrier that took part
/// when the barrier before was left, or when a fiber joined since: it has called barrier_gone(), or
/// barrier_break() ended this barrier.
bool barrier_of_members();

/// Whether fibers that began on this rank wait in the barrier.
bool barrier_has_waiting();

/// Ends the barrier for the fibers that wait in it, by arriving for all others that take part.
/// Returns when the barrier is left on all ranks; two messages for each. Requires: called on rank
/// 0; a fiber that takes part has not arrived, nor will before this returns; nobody joins, is gone
/// or moves meanwhile. Suspends. Errors: rank_lost.
void barrier_break();

/// Lets fibers meet as counted_barrier::arrive_and_wait does, for the object at `place`. Returns
/// all the bits that were set in the `word` of any fiber that met.
std::uint64_t meet(void* place, std::uint32_t fibers, std::uint64_t word);

}  // namespace sojourn::shared::detail
