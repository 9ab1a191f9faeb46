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

/// Fibers that wait for an event of shared memory.
struct waiters_for_event : waiters_for_shared {
  std::uint64_t fibers;  ///< That meet at a counted barrier; else 0.

  constexpr waiters_for_event(waits_at k, std::uint64_t o, int h, std::uint64_t f)
      : waiters_for_shared(k, o, h), fibers(f) {}
};

/// A fiber that waits for a shared::mutex, in this queue, and then holds it: from then on this is
/// in the list of what the fiber holds, among mutexes of its rank. Lies in the runtime's memory.
struct shared_lock : mutex_state {
  std::uint64_t object;     ///< Address of the mutex.
  std::uint64_t locked_at;  ///< Where the program called lock(): inside the call.

  shared_lock(std::uint64_t o, std::uint64_t code) : object(o), locked_at(code) {
    kind = waits_at::shared_mutex;
  }
};
shared_lock* new_shared_lock(std::uint64_t object, std::uint64_t code);
void free_shared_lock(shared_lock* lock);
/// The running fiber has the mutex.
void begin_hold(shared_lock* lock);
/// The mutex is unlocked, by whatever fiber runs. Frees `lock`: later, if another fiber has it in
/// its list, where it then is not `locked`.
void end_hold(shared_lock* lock);
/// Of fibers that have ended; linked by `before`.
const mutex_state* held_by_ended();

/// A fiber has ended while it held mutexes. One of its rank ends the rank.
void ended_with_mutexes();

}  // namespace sojourn::detail
