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
  /// Where the youngest mark lay that was open when it was locked: the mutex belongs to the frames
  /// younger than it. 0 when there was none. (The frame that called lock() tells less:
  /// it may be one of std::lock_guard, and gone.)
  std::uint64_t under = 0;
  bool locked = false;

  constexpr mutex_state() : waiters(waits_at::mutex) {}
};

/// True when the frames younger than the open mark at `at` have locked it, and it would go with
/// them.
inline bool held_below(const mutex_state& mutex, std::uint64_t at) {
  return mutex.under != 0 && mutex.under <= at;
}

}  // namespace sojourn::detail
