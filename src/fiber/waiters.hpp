// SPDX-License-Identifier: Apache-2.0
// Suspended pieces that wait for a mutex, a condition variable, a semaphore or a latch.
#pragma once

#include "fiber/piece.hpp"
#include "sojourn/detail/waiters.hpp"

namespace sojourn::detail {

/// Takes the first out of a queue that is not empty, with its timer if it has one.
piece* take_waiter(waiters& queue);
/// Takes `p` out of the queue that it waits in. Looks at all pieces before it.
void drop_waiter(piece* p);

/// Ends the rank: a fiber has ended while it held a mutex.
[[noreturn]] void ended_with_mutex();

}  // namespace sojourn::detail
