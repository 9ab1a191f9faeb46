// SPDX-License-Identifier: Apache-2.0
// What orders accesses to shared memory: the second part of sojourn/shared.hpp, with
// shared/atomic.hpp.
//
// The objects here hold nothing: an object is named by its address, which must be the same on all
// ranks. So it lies in shared memory, or is a global variable; it may be a member of another object
// there. Constructing one does nothing: all are unlocked, clear and empty at first. One rank, the
// home, keeps each flag, condition variable and counted barrier: the rank that allocated the memory
// in which the object lies, or any rank for a global variable. If that memory is freed, the states
// of the objects in it are forgotten.
#pragma once

#include <cstdint>

namespace sojourn::shared {

/// Mutual exclusion among all fibers of the job. Taking it again on the rank that had it last sends
/// nothing. A fiber unlocks it on the rank where it has locked it.
class mutex {
 public:
  mutex() = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// Suspends while another fiber of the job holds it. What was stored before its last unlock() can
  /// be loaded from then on. Fibers of this rank that wait come before those of other ranks, except
  /// that every 16th time another rank comes first.
  /// Errors: rank_lost when a rank has ended, and the mutex is on another one.
  void lock();
  /// Locks it if it is free and was last held on this rank. Never suspends.
  bool try_lock();
  /// Never suspends. Errors: sojourn::error when no fiber of this rank holds it. (After a rank was
  /// lost, which may have taken the mutex away, nothing happens instead.)
  void unlock();

 private:
  [[maybe_unused]] char place_ = 0;
};

/// A mutex that goes to a waiting rank before other fibers of this rank get it again. It is for
/// sections that many fibers of each rank enter all the time: a `mutex` would let fibers of other
/// ranks wait for 16 turns. A `mutex` sends fewer messages.
class fair_mutex : public mutex {
 public:
  void unlock();
};

/// Waiting for what other fibers of the job make true while they hold a mutex.
class condition_variable {
 public:
  condition_variable() = default;
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  /// Unlocks the mutex, waits until notified, and locks it again. Requires: this fiber holds it. A
  /// fiber that locks the mutex after this unlocks it, and then notifies, is never missed. A fiber
  /// may go on without having been notified: check the condition again, or use the form with
  /// `holds`. Suspends; the mutex stays locked until the home knows that this fiber waits. Errors:
  /// sojourn::error when no fiber of this rank holds the mutex; rank_lost when a rank has ended:
  /// the fiber then still holds the mutex if that is on this rank.
  void wait(mutex& m);
  /// The same until holds().
  template <class Condition>
  void wait(mutex& m, Condition holds) {
    while (!holds()) wait(m);
  }
  /// Lets the fiber that has waited longest go on, or all; if none waits, nothing happens. A fiber
  /// sees what was stored before this call once it locks the mutex, not by being notified: store
  /// while you hold the mutex. Suspends until the home knows. Errors: rank_lost when a rank has
  /// ended, and another one is the home.
  void notify_one();
  void notify_all();

 private:
  [[maybe_unused]] char place_ = 0;
};

/// A sign that fibers wait for. A fiber that has seen the flag set can load what was stored before
/// set(). Clear at first.
class flag {
 public:
  flag() = default;
  flag(const flag&) = delete;
  flag& operator=(const flag&) = delete;

  /// Suspends until the home has set it, or cleared it: from then on every rank sees the new state.
  /// Fibers that wait go on when it is set, however soon it is cleared again. Errors: rank_lost
  /// when a rank has ended, and another one is the home.
  void set();
  void clear();
  /// Returns once it is set. Suspends. Errors: rank_lost when a rank has ended, and it is not set
  /// or another one is the home.
  void wait();
  /// Suspends. Errors: as set().
  bool is_set();

 private:
  [[maybe_unused]] char place_ = 0;
};

/// A barrier of some fibers, wherever they are. It can be used again at once.
class counted_barrier {
 public:
  counted_barrier() = default;
  counted_barrier(const counted_barrier&) = delete;
  counted_barrier& operator=(const counted_barrier&) = delete;

  /// Returns when `fibers` fibers have called it. What any of them stored before can be loaded
  /// afterwards. Suspends. Two messages for each fiber, and a third for those that wait; barrier()
  /// sends two for each rank. Errors: sojourn::error when `fibers` is 0, or others wait with
  /// another number; rank_lost.
  void arrive_and_wait(std::uint32_t fibers);

 private:
  [[maybe_unused]] char place_ = 0;
};

/// Returns when all threads of run_threads() have called it, or, outside of run_threads(), the main
/// fibers of all ranks. What any of them stored before can be loaded afterwards. Suspends. Errors:
/// rank_lost.
void barrier();

/// Returns when all threads that run_threads() began on this rank have called it; outside of
/// run_threads(), in a main fiber, at once. No message and no notices: the fibers of a rank see
/// each other's stores anyway. A thread that has moved to another rank takes part in the barrier of
/// the rank where it began, by a call. Suspends. Errors: sojourn::error in other fibers; rank_lost
/// when a rank has ended meanwhile.
void local_barrier();

}  // namespace sojourn::shared
