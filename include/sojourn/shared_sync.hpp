// SPDX-License-Identifier: Apache-2.0
// What orders accesses to shared memory: the second part of sojourn/shared.hpp.
#pragma once

namespace sojourn::shared {

/// Mutual exclusion among all fibers of the job. It holds nothing: what names the lock is its
/// address, which must be the same on all ranks. So it lies in shared memory, or is a global
/// variable. Taking it again on the rank that had it last sends nothing. A fiber unlocks it on the
/// rank where it has locked it.
class mutex {
 public:
  mutex() = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// Suspends while another fiber of the job holds it. What was stored before its last unlock() can
  /// be loaded from then on. Fibers of this rank that wait come before those of other ranks.
  /// Errors: rank_lost when a rank has ended, and the mutex is on another one.
  void lock();
  /// Locks it if it is free and was last held on this rank. Never suspends.
  bool try_lock();
  /// Never suspends. Errors: sojourn::error when no fiber of this rank holds it.
  void unlock();

 private:
  [[maybe_unused]] char place_ = 0;
};

/// Returns when all threads of start() have called it, or, outside of start(), the main fibers of
/// all ranks. What any of them stored before can be loaded afterwards. Suspends.
/// Errors: rank_lost.
void barrier();

}  // namespace sojourn::shared
