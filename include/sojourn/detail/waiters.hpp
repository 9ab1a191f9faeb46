// SPDX-License-Identifier: Apache-2.0
// What the objects that fibers of one rank wait for have in common: who waits, in the order of
// coming. Plain words, so that an object that nobody waits for costs a few instructions.
#pragma once

#include <cstdint>

namespace sojourn::detail {

struct piece;
struct mark;

enum class waits_at : std::uint8_t { mutex, condition_variable, semaphore, latch };

/// Fibers that wait for an object: pieces, linked by piece::next_ready.
struct waiters {
  piece* first = nullptr;
  piece* last = nullptr;
  waits_at kind;

  constexpr explicit waiters(waits_at k) : kind(k) {}
  bool empty() const { return first == nullptr; }
};

/// A mutex as the runtime sees it. Those that a fiber holds are a list, the latest locked first: in
/// `running` while it runs, in its piece while it is suspended.
struct mutex_state : waiters {
  mutex_state* before = nullptr;  ///< Held by the same fiber and locked earlier.
  /// The youngest mark that was open when it was locked, by address: the mutex belongs to the
  /// frames younger than it. Null when there was none. (The frame that called lock() tells less:
  /// it may be one of std::lock_guard, and gone.)
  const mark* under = nullptr;
  bool locked = false;

  constexpr mutex_state() : waiters(waits_at::mutex) {}
};

/// True when the frames younger than the open mark `m` have locked it, and it would go with them.
inline bool held_below(const mutex_state& mutex, const mark* m) {
  auto under = reinterpret_cast<std::uintptr_t>(mutex.under);
  return under != 0 && under <= reinterpret_cast<std::uintptr_t>(m);
}

}  // namespace sojourn::detail
