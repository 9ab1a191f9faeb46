// SPDX-License-Identifier: Apache-2.0
// Suspended pieces that wait for a mutex or another object of their rank.
#pragma once

#include <cstdint>

#include "fiber/piece.hpp"
#include "sojourn/detail/waiters.hpp"
#include "sojourn/waiting/sleep.hpp"

namespace sojourn::detail {

/// Suspends in the queue until somebody takes this fiber out of it. Returns false when the deadline
/// has come first.
bool wait_in(waiters& queue, std::uint64_t deadline_ns = never_ns);
/// Takes the first piece out of a queue that is not empty, and cancels its timer if it has one.
piece* take_waiter(waiters& queue);
/// Takes `p` out of the queue in which it waits. Looks at all pieces before it in the queue.
void drop_waiter(piece* p);

/// The name of the type that such a queue belongs to, without "sojourn::".
const char* object_name(waits_at kind);

/// Fibers that wait for an event of shared memory.
struct waiters_for_event : waiters_for_shared {
  std::uint64_t fibers;  ///< How many fibers meet at this counted barrier; 0 for other events.

  constexpr waiters_for_event(waits_at k, std::uint64_t o, int h, std::uint64_t f)
      : waiters_for_shared(k, o, h), fibers(f) {}
};

}  // namespace sojourn::detail
