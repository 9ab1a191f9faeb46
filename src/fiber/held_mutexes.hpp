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
/// The same in the list of mutexes that the running fiber holds.
inline mutex_state** link_to(const mutex_state* m) { return link_to(&running.mutexes, m); }

/// A fiber's entry for a shared::mutex: the queue in which it waits, and then, while it holds the
/// mutex, an element in the list of what the fiber holds, among mutexes of its rank. Lies in the
/// runtime's memory.
struct shared_lock : mutex_state {
  std::uint64_t object;     ///< Address of the mutex.
  std::uint64_t locked_at;  ///< An address within the program's call of lock().

  shared_lock(std::uint64_t o, std::uint64_t code) : object(o), locked_at(code) {
    kind = waits_at::shared_mutex;
  }
};
shared_lock* new_shared_lock(std::uint64_t object, std::uint64_t code);
void free_shared_lock(shared_lock* lock);
/// Notes that the running fiber has the mutex.
void begin_hold(shared_lock* lock);
/// Notes that the mutex is unlocked, by whatever fiber runs. Frees `lock`. If another fiber has
/// `lock` in its list, it is only marked as not `locked`, and freed later.
void end_hold(shared_lock* lock);
/// The mutexes that fibers have left locked at their end; linked by `before`.
const mutex_state* held_by_ended();

/// A fiber has ended while it held mutexes. If one of them is a mutex of the fiber's rank, ends the
/// rank.
void ended_with_mutexes();

}  // namespace sojourn::detail
