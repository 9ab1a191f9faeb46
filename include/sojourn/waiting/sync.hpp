// SPDX-License-Identifier: Apache-2.0
// Synchronisation between the fibers of one rank. A rank has one thread, which goes from fiber to
// fiber only where one suspends: code without a suspension needs none of this. These objects lie in
// the memory of one rank: globals, its private heap, or members of objects there. Only fibers of
// that rank use them, and waiting fibers are served in the order in which they came.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "sojourn/detail/running.hpp"
#include "sojourn/detail/waiters.hpp"
#include "sojourn/waiting/sleep.hpp"

namespace sojourn {

namespace detail {
/// Ends the rank, because an object is destroyed that a fiber waits for, or holds.
void destroyed_in_use(const waiters& object);
[[noreturn]] void refuse_count(const waiters& object, std::ptrdiff_t count);
}  // namespace detail

/// Mutual exclusion across suspensions, to be used with std::lock_guard, std::unique_lock and
/// std::scoped_lock. Frames that have locked a mutex stay on their rank until it is unlocked; an
/// activation that they call may leave. The activation that locked a mutex unlocks it before it
/// returns. Not copyable.
/// Errors: a mutex that is destroyed while it is held or waited for, and a fiber that ends while it
/// holds one, end the job.
class mutex : private detail::mutex_state {
 public:
  constexpr mutex() = default;
  ~mutex() {
    if (locked || !empty()) [[unlikely]]
      detail::destroyed_in_use(*this);
  }
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /// Suspends while another fiber holds it; unlock() hands it to the fiber that has waited longest.
  /// Requires: a fiber. Errors: sojourn::error when this fiber holds it already.
  void lock() {
    if (locked) [[unlikely]] {
      (void)wait_for_turn(detail::never_ns);
      return;
    }
    take();
  }

  /// Locks it, or returns false when a fiber holds it, this one included. Never suspends.
  bool try_lock() {
    if (locked) return false;
    take();
    return true;
  }

  /// Locks it, but waits little longer than until `time` for that; false when another fiber still
  /// holds it then. It is a std::timed_mutex also for std::unique_lock's constructors. If `time` is
  /// past, other fibers run once. Suspends: while another fiber holds it. Errors: as lock().
  template <class Duration>
  bool try_lock_until(std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
    return try_lock() || wait_for_turn(detail::ns_of(time));
  }
  template <class Rep, class Period>
  bool try_lock_for(std::chrono::duration<Rep, Period> span) {
    return try_lock() || wait_for_turn(detail::ns_after(span));
  }

  /// True when this fiber holds it, so that lock() would wait for itself. (A child does not hold
  /// what its caller has locked, because the caller may go on and unlock it.) Never suspends.
  bool is_mine() const { return locked && holds(); }

  /// A fiber may unlock several mutexes in any order. Never suspends.
  /// Errors: sojourn::error when this fiber does not hold it.
  void unlock() {
    detail::check_thread();
    if (detail::running.mutexes != this || !empty()) [[unlikely]]
      return pass_on();
    detail::running.mutexes = before;
    locked = false;
  }

 private:
  friend class condition_variable;

  void take() {
    detail::check_thread();
    locked = true;
    under = detail::youngest_mark();
    before = detail::running.mutexes;
    detail::running.mutexes = this;
  }
  bool holds() const;
  /// True when this fiber holds it now.
  bool wait_for_turn(std::uint64_t deadline_ns);
  void pass_on();
};

/// Waiting for what another fiber of the rank makes true. Not copyable.
/// Errors: one that is destroyed while a fiber waits in it ends the job.
class condition_variable : private detail::waiters {
 public:
  constexpr condition_variable() : waiters(detail::waits_at::condition_variable) {}
  ~condition_variable() {
    if (!empty()) [[unlikely]]
      detail::destroyed_in_use(*this);
  }
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  /// Unlocks, suspends until notified, and locks again. Between unlocking and waiting no other
  /// fiber runs. Other fibers may have run between the notification and the return: check the
  /// condition again, or use the form with `holds`. Requires: a fiber. Suspends.
  /// Errors: sojourn::error when `lock` does not hold its mutex.
  void wait(std::unique_lock<mutex>& lock) { (void)wait_ns(lock, detail::never_ns); }

  /// The same until holds().
  template <class Predicate>
  void wait(std::unique_lock<mutex>& lock, Predicate holds) {
    while (!holds()) wait(lock);
  }

  /// The same, but waits little longer than until `time`; returns `timeout` when nobody has
  /// notified this fiber by then.
  template <class Duration>
  std::cv_status wait_until(std::unique_lock<mutex>& lock,
                            std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
    return status(wait_ns(lock, detail::ns_of(time)));
  }
  template <class Rep, class Period>
  std::cv_status wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> span) {
    return status(wait_ns(lock, detail::ns_after(span)));
  }

  /// The same until holds() or `time`; returns holds().
  template <class Duration, class Predicate>
  bool wait_until(std::unique_lock<mutex>& lock,
                  std::chrono::time_point<std::chrono::steady_clock, Duration> time,
                  Predicate holds) {
    return wait_ns(lock, detail::ns_of(time), holds);
  }
  template <class Rep, class Period, class Predicate>
  bool wait_for(std::unique_lock<mutex>& lock, std::chrono::duration<Rep, Period> span,
                Predicate holds) {
    return wait_ns(lock, detail::ns_after(span), holds);
  }

  /// Wakes the fiber that has waited longest, or all. Never suspends. The mutex need not be held.
  void notify_one() {
    if (!empty()) wake_first();
  }
  void notify_all() {
    while (!empty()) wake_first();
  }

 private:
  static std::cv_status status(bool notified) {
    return notified ? std::cv_status::no_timeout : std::cv_status::timeout;
  }
  template <class Predicate>
  bool wait_ns(std::unique_lock<mutex>& lock, std::uint64_t deadline_ns, Predicate& holds) {
    while (!holds()) {
      if (!wait_ns(lock, deadline_ns)) return holds();
    }
    return true;
  }
  /// True when notified.
  bool wait_ns(std::unique_lock<mutex>& lock, std::uint64_t deadline_ns);
  void wake_first();
};

/// A count of units that fibers may take. Not copyable.
/// Errors: one that is destroyed while a fiber waits for it ends the job.
class semaphore : private detail::waiters {
 public:
  /// Errors: sojourn::error when `count` is negative.
  constexpr explicit semaphore(std::ptrdiff_t count)
      : waiters(detail::waits_at::semaphore), count_(count) {
    if (count < 0) detail::refuse_count(*this, count);
  }
  ~semaphore() {
    if (!empty()) [[unlikely]]
      detail::destroyed_in_use(*this);
  }
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;

  /// Takes one unit; suspends until there is one for this fiber. Requires: a fiber.
  void acquire() {
    if (!try_acquire()) (void)wait(detail::never_ns);
  }
  /// The same, but waits little longer than until `time`; false when there was none for this fiber
  /// by then. If `time` is past, other fibers run once.
  template <class Duration>
  bool try_acquire_until(std::chrono::time_point<std::chrono::steady_clock, Duration> time) {
    return try_acquire() || wait(detail::ns_of(time));
  }
  template <class Rep, class Period>
  bool try_acquire_for(std::chrono::duration<Rep, Period> span) {
    return try_acquire() || wait(detail::ns_after(span));
  }
  /// Takes one unit, or returns false when there is none. Never suspends.
  bool try_acquire() {
    detail::check_thread();
    if (count_ == 0) return false;
    --count_;
    return true;
  }
  /// Gives `n` units, first to fibers that wait. Any fiber may do that, not only one that has taken
  /// some. Never suspends. Errors: sojourn::error when `n` is negative.
  void release(std::ptrdiff_t n = 1) {
    detail::check_thread();
    if (!empty() || n < 0) [[unlikely]]
      return give(n);
    count_ += n;
  }

 private:
  /// True when this fiber has been given one.
  bool wait(std::uint64_t deadline_ns);
  void give(std::ptrdiff_t n);

  std::ptrdiff_t count_;  // 0 while somebody waits
};

/// A count that goes down to zero once. Not copyable.
/// Errors: one that is destroyed while a fiber waits for it ends the job.
class latch : private detail::waiters {
 public:
  /// Errors: sojourn::error when `count` is negative.
  constexpr explicit latch(std::ptrdiff_t count) : waiters(detail::waits_at::latch), count_(count) {
    if (count < 0) detail::refuse_count(*this, count);
  }
  ~latch() {
    if (!empty()) [[unlikely]]
      detail::destroyed_in_use(*this);
  }
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  /// Takes `n` from the count; at zero all waiting fibers go on. Never suspends.
  /// Errors: sojourn::error when `n` is negative or more than the count.
  void count_down(std::ptrdiff_t n = 1) {
    detail::check_thread();
    if (n < 0 || n > count_) [[unlikely]]
      detail::refuse_count(*this, n);
    count_ -= n;
    if (count_ == 0 && !empty()) wake_all();
  }
  bool try_wait() const { return count_ == 0; }
  /// Suspends until the count is zero. Requires: a fiber.
  void wait() {
    if (count_ != 0) wait_for_zero();
  }
  void arrive_and_wait(std::ptrdiff_t n = 1) {
    count_down(n);
    wait();
  }

 private:
  void wait_for_zero();
  void wake_all();

  std::ptrdiff_t count_;
};

}  // namespace sojourn
