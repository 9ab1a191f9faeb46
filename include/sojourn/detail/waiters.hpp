// SPDX-License-Identifier: Apache-2.0
// The common part of objects that fibers of one rank wait for: who waits, in order of arrival. Only
// plain words, so that an object that nobody waits for costs a few instructions.
#pragma once

#include <cstdint>

namespace sojourn::detail {

struct piece;
struct mark;

enum class waits_at : std::uint8_t {
  mutex,
  condition_variable,
  semaphore,
  latch,
  dist_object,
  replicated,
  static_variable,
  once,
  shared_page,
  shared_mutex,
  shared_barrier,
  shared_local_barrier,
  shared_atomic,
  shared_flag,
  shared_condition,
  shared_counted_barrier
};

/// Fibers that wait for an object: pieces, linked by piece::next_ready.
struct waiters {
  piece* first = nullptr;
  piece* last = nullptr;
  waits_at kind;

  constexpr explicit waiters(waits_at k) : kind(k) {}
  bool empty() const { return first == nullptr; }
};

/// Fibers that wait for an object that all ranks share.
struct waiters_for_shared : waiters {
  std::uint64_t object;  ///< Its address.
  int home;              ///< The rank that keeps it, or -1.

  constexpr waiters_for_shared(waits_at k, std::uint64_t o, int h)
      : waiters(k), object(o), home(h) {}
};
/// Whether such a queue is one for an object.
constexpr bool has_shared_object(waits_at k) {
  return k == waits_at::shared_mutex || k >= waits_at::shared_atomic;
}

/// A mutex as the runtime sees it. The mutexes that a fiber holds form a list, the latest locked
/// first: the list is in `running` while the fiber runs, and in its piece while it is suspended.
struct mutex_state : waiters {
  mutex_state* before = nullptr;  ///< Held by the same fiber and locked earlier.
  /// The address of the youngest mark that was open when the mutex was locked: the mutex belongs to
  /// the frames younger than that mark. 0 when no mark was open. (The frame that called lock() says
  /// less: it may be a function of std::lock_guard, and gone.)
  std::uint64_t under = 0;
  bool locked = false;

  constexpr mutex_state() : waiters(waits_at::mutex) {}
};

/// True when frames younger than the open mark at `at` have locked the mutex, so that it would go
/// with them.
inline bool held_below(const mutex_state& mutex, std::uint64_t at) {
  return mutex.under != 0 && mutex.under <= at;
}

}  // namespace sojourn::detail
