// SPDX-License-Identifier: Apache-2.0
#include "fiber/held_mutexes.hpp"

#include <utility>

#include "base/check.hpp"
#include "memory/runtime_resource.hpp"
#include "sojourn/detail/running.hpp"

namespace sojourn::detail {

namespace {

/// Mutexes that fibers have left locked at their end: other fibers of the rank may unlock them.
mutex_state* of_ended = nullptr;

}  // namespace

shared_lock* new_shared_lock(std::uint64_t object, std::uint64_t code) {
  return ::new (runtime_resource()->allocate(sizeof(shared_lock))) shared_lock(object, code);
}

void free_shared_lock(shared_lock* lock) {
  runtime_resource()->deallocate(lock, sizeof(shared_lock));
}

void begin_hold(shared_lock* lock) {
  // Frees the entries of mutexes that other fibers have unlocked meanwhile.
  while (running.mutexes != nullptr && !running.mutexes->locked)
    free_shared_lock(
        static_cast<shared_lock*>(std::exchange(running.mutexes, running.mutexes->before)));
  lock->locked = true;
  lock->under = youngest_mark();
  lock->before = running.mutexes;
  running.mutexes = lock;
}

void end_hold(shared_lock* lock) {
  lock->locked = false;
  mutex_state** link = link_to(&running.mutexes, lock);
  if (link == nullptr) link = link_to(&of_ended, lock);
  // Otherwise the entry is in the list of a suspended fiber, whose state may be out of place: that
  // fiber frees it later.
  if (link == nullptr) return;
  *link = lock->before;
  free_shared_lock(lock);
}

const mutex_state* held_by_ended() { return of_ended; }

void ended_with_mutexes() {
  for (mutex_state* m = std::exchange(running.mutexes, nullptr); m != nullptr;) {
    if (m->kind == waits_at::mutex) {
      die("a fiber has ended while it held a sojourn::mutex (0x%llx), which nobody can unlock any "
          "more: unlock it first, or use std::lock_guard",
          static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(m)));
    }
    auto* lock = static_cast<shared_lock*>(std::exchange(m, m->before));
    if (!lock->locked) {
      free_shared_lock(lock);
    } else {
      lock->before = std::exchange(of_ended, lock);
    }
  }
}

}  // namespace sojourn::detail
