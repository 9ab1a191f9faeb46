// SPDX-License-Identifier: Apache-2.0
#include "fiber/waiters.hpp"

#include <cstdint>
#include <utility>

#include "base/check.hpp"
#include "fiber/block.hpp"
#include "fiber/held_mutexes.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/timers.hpp"
#include "fiber/wait_clock.hpp"
#include "sojourn/waiting/sync.hpp"

// The linker's names for the bounds of the executable: its variables lie between them.
extern "C" const char __executable_start;
extern "C" const char _end;

namespace sojourn::detail {

const char* object_name(waits_at kind) {
  switch (kind) {
    case waits_at::mutex:
      return "mutex";
    case waits_at::condition_variable:
      return "condition_variable";
    case waits_at::semaphore:
      return "semaphore";
    case waits_at::latch:
      return "latch";
    case waits_at::dist_object:
      return "dist_object";
    case waits_at::replicated:
      return "replicated";
    case waits_at::static_variable:
      return "static variable";
    case waits_at::once:
      return "once_flag";
    case waits_at::shared_page:
      return "page of shared memory";
    case waits_at::shared_mutex:
      return "shared::mutex";
    case waits_at::shared_barrier:
      return "shared::barrier";
    case waits_at::shared_local_barrier:
      return "shared::local_barrier";
    case waits_at::shared_atomic:
      return "shared::atomic";
    case waits_at::shared_flag:
      return "shared::flag";
    case waits_at::shared_condition:
      return "shared::condition_variable";
    case waits_at::shared_counted_barrier:
      break;
  }
  return "shared::counted_barrier";
}

namespace {

unsigned long long number(const void* p) {
  return static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(p));
}

/// True when the running fiber would wait for itself if it waited for `m`. It would not if frames
/// older than its youngest fork hold `m`: these go on, and may unlock `m`.
bool would_wait_for_itself(const mutex_state* m) {
  const piece* p = running_piece();
  if (p == nullptr || link_to(m) == nullptr) return false;
  const boundary fork = youngest_open_fork();
  return !fork || held_below(*m, fork.at);
}

}  // namespace

bool wait_in(waiters& queue, std::uint64_t deadline_ns) {
  struct place {
    waiters* queue;
    std::uint64_t deadline_ns;
  } wanted{&queue, deadline_ns};
  const resumed word = leave_to_wait(
      [](piece* left, void* context) {
        place to = *static_cast<place*>(context);
        piece* waiter = block(left);
        wait_times.begins(waiter);
        waiter->waits_on = to.queue;
        waiter->next_ready = nullptr;
        if (to.queue->first == nullptr) {
          to.queue->first = waiter;
        } else {
          to.queue->last->next_ready = waiter;
        }
        to.queue->last = waiter;
        if (to.deadline_ns != never_ns) set_timer(waiter, to.deadline_ns);
      },
      &wanted);
  return word != resumed::by_timer;
}

piece* take_waiter(waiters& queue) {
  check_thread();
  piece* p = queue.first;
  queue.first = p->next_ready;
  p->waits_on = nullptr;
  cancel_timer(p);
  return p;
}

void drop_waiter(piece* p) {
  waiters& queue = *p->waits_on;
  p->waits_on = nullptr;
  piece* before = nullptr;
  for (piece* q = queue.first; q != p; q = q->next_ready) before = q;
  (before == nullptr ? queue.first : before->next_ready) = p->next_ready;
  if (queue.last == p) queue.last = before;
}

void destroyed_in_use(const waiters& object) {
  // A static variable may be destroyed while it is in use: it is destroyed at exit, when nobody
  // will wait for it any more.
  if (number(&object) >= number(&__executable_start) && number(&object) < number(&_end)) return;
  if (!object.empty()) {
    die("a sojourn::%s (0x%llx) is destroyed while a fiber waits for it", object_name(object.kind),
        number(&object));
  }
  die("a sojourn::mutex (0x%llx) is destroyed while a fiber holds it", number(&object));
}

void refuse_count(const waiters& object, std::ptrdiff_t count) {
  throw error(format("a sojourn::%s cannot count %s%td: %s", object_name(object.kind),
                     count < 0 ? "" : "down by ", count,
                     count < 0 ? "a count cannot be negative" : "that is more than is left"));
}

}  // namespace sojourn::detail

namespace sojourn {

bool mutex::holds() const { return detail::would_wait_for_itself(this); }

bool mutex::wait_for_turn(std::uint64_t deadline_ns) {
  if (detail::would_wait_for_itself(this)) {
    throw error(detail::format(
        "a fiber locks a sojourn::mutex (0x%llx) that it holds already, and would wait for itself: "
        "unlock it first, or leave out the second lock",
        detail::number(this)));
  }
  // pass_on() makes this fiber the holder when another fiber unlocks the mutex.
  return detail::wait_in(*this, deadline_ns);
}

void mutex::pass_on() {
  detail::mutex_state** link = detail::link_to(this);
  if (link == nullptr) {
    throw error(
        detail::format("a fiber unlocks a sojourn::mutex (0x%llx) that %s: only the fiber that "
                       "locked it may unlock it",
                       detail::number(this), locked ? "another fiber holds" : "no fiber holds"));
  }
  *link = before;
  if (empty()) {
    locked = false;
    return;
  }
  detail::piece* next = detail::take_waiter(*this);
  under = reinterpret_cast<std::uint64_t>(next->youngest);
  before = next->mutexes;
  next->mutexes = this;
  detail::make_ready(next, detail::resumed::here);
}

bool condition_variable::wait_ns(std::unique_lock<mutex>& lock, std::uint64_t deadline_ns) {
  if (!lock.owns_lock()) {
    throw error(
        "a fiber waits in a sojourn::condition_variable with a lock that does not hold its mutex: "
        "lock it first");
  }
  mutex& m = *lock.mutex();
  // Kept, because the frames that locked the mutex may be older than the frames that wait.
  const std::uint64_t under = m.under;
  m.unlock();
  bool notified = detail::wait_in(*this, deadline_ns);
  m.lock();
  m.under = under;
  return notified;
}

void condition_variable::wake_first() {
  detail::make_ready(detail::take_waiter(*this), detail::resumed::here);
}

bool semaphore::wait(std::uint64_t deadline_ns) { return detail::wait_in(*this, deadline_ns); }

void semaphore::give(std::ptrdiff_t n) {
  if (n < 0) detail::refuse_count(*this, n);
  for (; n > 0 && !empty(); --n)
    detail::make_ready(detail::take_waiter(*this), detail::resumed::here);
  count_ += n;
}

void latch::wait_for_zero() { (void)detail::wait_in(*this); }

void latch::wake_all() {
  // Those woken first may destroy it.
  while (!empty()) detail::make_ready(detail::take_waiter(*this), detail::resumed::here);
}

}  // namespace sojourn
