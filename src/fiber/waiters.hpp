// SPDX-License-Identifier: Apache-2.0
// Suspended pieces that wait for a mutex or another object of their rank.
#pragma once

#include <cstdint>

#include "fiber/piece.hpp"
#include "sojourn/detail/waiters.hpp"
#include "sojourn/sleep.hpp"

namespace sojourn::detail {

/// Suspends in the queue until somebody takes this fiber out of it. False when its time has come.
bool wait_in(waiters& queue, std::uint64_t deadline_ns = never_ns);
/// Takes the first out of a queue that is not empty, with its timer if it has one.
piece* take_waiter(waiters& queue);
/// Takes `p` out of the queue that it waits in. Looks at all pieces before it.
void drop_waiter(piece* p);

/// What such a queue belongs to, without "sojourn::".
const char* object_name(waits_at kind);

/// Ends the rank: a fiber has ended while it held a mutex.
[[noreturn]] void ended_with_mutex();

}  // namespace sojourn::detail
