// SPDX-License-Identifier: Apache-2.0
// Fibers that wait for tickets of this rank.
#pragma once

#include <cstdint>

#include "base/check.hpp"
#include "fiber/block.hpp"
#include "fiber/ticket_table.hpp"

namespace sojourn::detail {

/// An action: `left`, or its part that is younger than its youngest fork, waits for the ticket
/// `awaited`.
void begin_wait(piece* left, void* awaited);
/// Suspends the running piece until `t` has a result. Requires: nobody waits for `t` yet. Inline
/// for the same reason as leave().
[[gnu::always_inline]] inline void wait_for(ticket* t) {
  SOJOURN_CHECK(t->waiter == nullptr && t->notify == nullptr,
                "two fibers wait for the same future: only one may");
  leave_to_wait(begin_wait, t);
}

// ---- One wait for several results ---------------------------------------------------------------

/// Makes `t` one of the results that the ticket `all` waits for. `all` counts in notify_context how
/// many are missing.
void count_for(ticket* t, const ticket* all);
/// Makes `t` one of the results of which the ticket `first` waits for any.
void watch_for(ticket* t, const ticket* first);
/// Undoes watch_for().
void stop_watching(ticket* t);
/// The ticket that waits for `t` among several, by count_for or watch_for; or 0.
ticket_id waits_for_several(const ticket& t);
/// True when somebody waits for `t`, so that nobody else may.
bool has_reader(const ticket& t);

/// Suspends the running piece until one of the results is here that `first` waits for, or until
/// `deadline_ns`. The fiber may be woken before that, and may then be on another rank.
void wait_for_first(ticket* first, std::uint64_t deadline_ns);
/// Ends the wait of `p` for a ticket, without a result. To be called by whoever wakes `p` for
/// another reason.
void stop_waiting(const piece* p);

/// Called when the rank has nothing to do. Makes the fiber ready that was the last to begin to wait
/// for another rank's answer. So that fiber goes on waiting on its own stack, and sees the answer
/// one switch of stacks earlier. Does so once for each wait. Returns false when there is no such
/// fiber.
bool wake_to_stand_by();

}  // namespace sojourn::detail
