// SPDX-License-Identifier: Apache-2.0
// The mutexes that the running fiber holds, and those that fibers have left locked at their end.
#pragma once

#include <cstdint>

#include "sojourn/detail/running.hpp"
#include "sojourn/detail/waiters.hpp"

namespace sojourn::detail {

/// The link to `m` in the list that begins with `first`, or null.
inline mutex_state** link_to(mutex_state** first, const mutex_state* m) {
  for (mutex_state** link = first; *link != nullptr; link = &(*link)->before) {
    if (*link == m) return link;
  }
  return nullptr;
}
/// The same in the list of what the running fiber holds.
inline mutex_state** link_to(const mutex_state* m) { return link_to(&running.mutexes, m); }

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
