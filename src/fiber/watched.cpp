// SPDX-License-Identifier: Apache-2.0
#include "fiber/watched.hpp"

#include <pthread.h>

#include <vector>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "fiber/scheduler.hpp"
#include "frames/function_name.hpp"
#include "frames/stack_frames.hpp"
#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"
#include "sojourn/calls/nonblocking.hpp"
#include "sojourn/detail/checked.hpp"

namespace sojourn::detail {

namespace {

struct watched {
  watched_kind kind;
  const void* what;
  std::uint64_t frame;
  std::uint64_t code;
};

// Oldest first. One list for all fibers of this rank, because one thread runs them all.
std::vector<watched>& open() {
  static std::vector<watched> list;
  return list;
}

}  // namespace

void watch(watched_kind kind, const void* what, std::uint64_t frame, std::uint64_t code) {
  open().push_back({kind, what, frame, code});
  ++running.watched;
}

void unwatch(watched_kind kind, const void* what) {
  for (std::size_t i = open().size(); i-- > 0;) {
    if (open()[i].kind != kind || open()[i].what != what) continue;
    open().erase(open().begin() + static_cast<std::ptrdiff_t>(i));
    --running.watched;
    return;
  }
}

void check_watched(std::uint64_t sp, std::uint64_t hi, const char* doing) {
  for (const watched& w : open()) {
    if (w.frame < sp || w.frame >= hi) continue;
    std::string function = function_name(w.code);
    if (is_excused(function)) continue;
    if (w.kind == watched_kind::mutex) {
      die("`%s` %s while it holds a mutex (0x%llx): another fiber that locks it stops this rank "
          "for ever; unlock it first",
          function.c_str(), doing, reinterpret_cast<unsigned long long>(w.what));
    }
    die("`%s` promised not to block (sojourn::nonblocking) and %s: take back the promise, or "
        "leave what waits to its caller",
        function.c_str(), doing);
  }
}

}  // namespace sojourn::detail

namespace sojourn {

void nonblocking<detail::this_scope>::promise() {
  if (detail::running_piece() == nullptr) return;
  open_ = true;
  auto code = reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1;
  detail::watch(detail::watched_kind::nonblocking, this, reinterpret_cast<std::uint64_t>(this),
                code);
}

}  // namespace sojourn

namespace sojourn::detail {
unsigned recursive_mutexes_held = 0;
}

#ifndef SOJOURN_NO_CHECKED
namespace sojourn::detail {

namespace {

/// The code of the program that is about to lock a mutex, if mutexes are watched. It is found
/// before the mutex is locked: finding it walks the stack, and the mutex may be the unwinder's own
/// (in a program that is linked statically).
struct locking {
  bool is_watched = false;
  std::uint64_t code = 0;
};

locking about_to_lock() {
  auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  // Mutexes of other threads do not concern the fibers.
  if (running_piece() == nullptr || !addresses.in_stacks(here)) return {};
  // Mutexes that are locked by the walk or by its calls of malloc are not watched.
  static bool looking = false;
  if (looking) return {};
  looking = true;
  const locking found{true, user_code(running_piece()->hi)};
  looking = false;
  return found;
}

void unlocked(const void* mutex) {
  auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (running.watched != 0 && addresses.in_stacks(here)) unwatch(watched_kind::mutex, mutex);
}

/// True for a recursive mutex, which lets its thread in again: to it, all fibers of a rank are one
/// thread.
bool is_recursive(const pthread_mutex_t* mutex) {
#ifdef __GLIBC__
  return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP;
#else
  return false;
#endif
}
unsigned times_locked(const pthread_mutex_t* mutex) {
#ifdef __GLIBC__
  return mutex->__data.__count;
#else
  return 0;
#endif
}

/// A recursive mutex that is held: the piece that locked it first, and an address in the frame that
/// did. If more are held than there are entries, the others go unchecked.
struct held_mutex {
  const pthread_mutex_t* mutex;
  const piece* owner;
  std::uint64_t frame;
};
held_mutex recursive_held[64];

held_mutex* find_recursive(const pthread_mutex_t* mutex) {
  for (held_mutex& each : recursive_held)
    if (each.mutex == mutex) return &each;
  return nullptr;
}

void recursive_locked(pthread_mutex_t* mutex) {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  const piece* self = running_piece();
  if (self == nullptr || !addresses.in_stacks(here)) return;
  held_mutex* held = find_recursive(mutex);
  if (times_locked(mutex) == 1) {
    // If there is an entry already, the mutex was unlocked by code that is not seen here, in a
    // library.
    if (held == nullptr && (held = find_recursive(nullptr)) != nullptr) ++recursive_mutexes_held;
    if (held != nullptr) *held = {mutex, self, here};
    return;
  }
  if (held == nullptr || held->owner == self) return;
  die("a recursive mutex (0x%llx) that one fiber has locked, and holds while it waits, lets "
      "another fiber in, because all fibers of a rank are one thread to it: use a sojourn::mutex, "
      "or unlock it before what waits",
      reinterpret_cast<unsigned long long>(mutex));
}

void recursive_unlocks(pthread_mutex_t* mutex) {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (times_locked(mutex) != 1 || !addresses.in_stacks(here)) return;
  if (held_mutex* const held = find_recursive(mutex); held != nullptr) {
    *held = {};
    --recursive_mutexes_held;
  }
}

/// Locks a mutex, or a lock for readers and a writer, and watches it.
template <class Lock>
[[gnu::always_inline]] inline int lock_watched(int (*how)(Lock*), Lock* what) {
  locking by;
  if (checked()) [[unlikely]]
    by = about_to_lock();
  const int failure = how(what);
  if (failure == 0 && by.is_watched) [[unlikely]]
    watch(watched_kind::mutex, what, reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)),
          by.code);
  return failure;
}

using lock_function = int (*)(pthread_mutex_t*);
[[gnu::always_inline]] inline int lock(lock_function how, pthread_mutex_t* mutex) {
  const int failure = lock_watched(how, mutex);
  if (failure == 0 && is_recursive(mutex)) [[unlikely]]
    recursive_locked(mutex);
  return failure;
}

}  // namespace

void divide_recursive_mutexes(const piece* older, const piece* younger) {
  for (held_mutex& each : recursive_held)
    if (each.owner == older && each.frame < younger->hi) each.owner = younger;
}

}  // namespace sojourn::detail

using namespace sojourn::detail;

extern "C" {
int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  return lock(__real_pthread_mutex_lock, mutex);
}
int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  return lock(__real_pthread_mutex_trylock, mutex);
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (checked()) [[unlikely]]
    unlocked(mutex);
  if (is_recursive(mutex)) [[unlikely]]
    recursive_unlocks(mutex);
  return __real_pthread_mutex_unlock(mutex);
}

int __real_pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int __real_pthread_rwlock_tryrdlock(pthread_rwlock_t* lock);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t* lock);
int __real_pthread_rwlock_trywrlock(pthread_rwlock_t* lock);
int __real_pthread_rwlock_unlock(pthread_rwlock_t* lock);

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  return lock_watched(__real_pthread_rwlock_rdlock, lock);
}
int __wrap_pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) {
  return lock_watched(__real_pthread_rwlock_tryrdlock, lock);
}
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  return lock_watched(__real_pthread_rwlock_wrlock, lock);
}
int __wrap_pthread_rwlock_trywrlock(pthread_rwlock_t* lock) {
  return lock_watched(__real_pthread_rwlock_trywrlock, lock);
}
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t* lock) {
  if (checked()) [[unlikely]]
    unlocked(lock);
  return __real_pthread_rwlock_unlock(lock);
}
}
#else
namespace sojourn::detail {
void divide_recursive_mutexes(const piece*, const piece*) {}
}  // namespace sojourn::detail
#endif
