// SPDX-License-Identifier: Apache-2.0
// What processes wait for that shared memory does not have as such: barriers of so many processes,
// loops whose subscripts are dealt out, semaphores. All of them are known by their addresses.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// Returns when `count` processes have called it for this address. Where these are all there are,
/// it is the barrier of shared memory, at which pages become their only writer's own. `are_all`
/// says so to main(), and to nobody else.
void meet(void* barrier, std::uint32_t count, bool (*are_all)(std::uint32_t count));
/// A process will be created: barriers of all processes are not known as such any more, and those
/// who wait in the barrier of shared memory wait for others by address. Requires: called on rank
/// 0, while no process begins or ends, for one that does not wait itself. Suspends until that is so
/// on all ranks.
void forget_everyone();

/// See sojourn_subscript. Occupies two words.
long next_subscript(void* counter, long last, std::uint32_t processes);

/// Semaphores occupy three words.
void set_semaphore(void* semaphore, long count);
void take_semaphore(void* semaphore);
void give_semaphore(void* semaphore);

}  // namespace sojourn::detail
