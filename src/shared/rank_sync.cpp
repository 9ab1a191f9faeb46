// SPDX-License-Identifier: Apache-2.0
// Fibers that wait for what orders accesses to shared memory: mutexes, barriers, answers about
// atomics, flags and the like; and who takes part in barriers.
#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "fiber/held_mutexes.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/waiters.hpp"
#include "memory/address_map.hpp"
#include "memory/runtime_resource.hpp"
#include "memory/stack_slots.hpp"
#include "message/loop.hpp"
#include "message/losses.hpp"
#include "shared/rank_memory.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/threads/thread.hpp"

namespace sojourn::detail::pages {

/// A fiber that waits for answers about an object. It does not lie on the fiber's stack, because
/// that may be out of place when an answer comes.
struct rank_memory::event_wait {
  waiters_for_event queue;
  event_answer last{event_answer::kind::asked};
};

// --- What the protocols tell

void rank_memory::wake_locker(waiter fiber) {
  auto* lock = static_cast<shared_lock*>(fiber);
  lock->locked = true;  // perhaps before the fiber waits
  wake_all(*lock);
}

void rank_memory::answered(waiter fiber, const event_answer& a) {
  auto* wait = static_cast<event_wait*>(fiber);
  wait->last = a;  // perhaps before the fiber waits
  // A checkpoint does not save answers, so a fiber that has one runs on, also while fibers are set
  // aside, until it waits for something else.
  for (piece* p = wait->queue.first; p != nullptr; p = p->next_ready) p->runs_frozen = true;
  wake_all(wait->queue);
}

// An object in shared memory is kept by the rank that allocated that memory, because free() makes
// that rank forget what it keeps.
int rank_memory::home_of(std::uint64_t object) {
  if (addresses.in_shared(object)) return owner(object);
  // Variables that lie next to each other have different homes.
  const std::uint64_t mixed = (object * 0x9e3779b97f4a7c15ull) >> 32;
  return static_cast<int>(mixed % static_cast<std::uint64_t>(job.count));
}

namespace {

int next_rank() { return job.me + 1 < job.count ? job.me + 1 : 0; }

}  // namespace

template <class Over>
void rank_memory::wait_for(waiters& queue, std::uint64_t what, bool rings, int from, Over over) {
  if (over()) return;
  const wait_counts::kind kind = kind_of(queue);
  waits_.begin(kind, what, anything_ready(), clock_.ns());
  while (!over() && take_reply_in_place(from)) {
  }
  if (over()) {
    waits_.end(kind, clock_.ns());
  } else {
    leave_to_wait_in(queue, rings);
  }
  waits_.over(kind, what);
}

// --- Mutexes

void rank_memory::lock(std::uint64_t l, std::uint64_t code) {
  note_ran();
  if (first_lost_rank() != no_rank && !pages_.lock_is_here(l)) [[unlikely]]
    throw_mutex_lost(l);
  shared_lock* const mine = new_shared_lock(l, code);
  mine->locked = pages_.take_lock(l, mine) || mine->locked;
  const int home = home_of(l);
  wait_for(*mine, l, true, home != job.me ? home : next_rank(), [mine] { return mine->locked; });
  if (!mine->locked) [[unlikely]] {
    free_shared_lock(mine);
    throw_mutex_lost(l);
  }
  begin_hold(mine);
}

bool rank_memory::try_lock(std::uint64_t l, std::uint64_t code) {
  shared_lock* const mine = new_shared_lock(l, code);
  const bool has_it = pages_.try_lock(l, mine);
  if (has_it)
    begin_hold(mine);
  else
    free_shared_lock(mine);
  return has_it;
}

void rank_memory::unlock(std::uint64_t l, bool fair) {
  note_ran();
  auto* const held = static_cast<shared_lock*>(pages_.lock_holder(l));
  if (held == nullptr) {
    // The mutex may have been lost while this fiber waited for a condition.
    if (first_lost_rank() != no_rank) return;
    throw error(
        format("a sojourn::shared::mutex (0x%llx) is unlocked on rank %d, where no fiber "
               "holds it: unlock it on the rank where it was locked",
               static_cast<unsigned long long>(l), job.me));
  }
  pages_.release_lock(l, pages_.others_turn(l, fair));
  end_hold(held);
  // A rank that keeps locking and unlocking a mutex that it has is mostly in the runtime when
  // others ring, where the handler of the bell cannot answer. Without this it would not look at
  // messages for a long time.
  if (missed_bell_) [[unlikely]] {
    missed_bell_ = false;
    take_replies_about_shared_memory(interrupted::nothing);
    refresh_pinned();
  }
}

// --- Atomics, flags and the like

rank_memory::event_wait* rank_memory::begin_to_ask(const event_question& q, waits_at kind) {
  note_ran();
  const int to = pages_.home_of(q);
  if (first_lost_rank() != no_rank && to != job.me) [[unlikely]]
    throw_event_lost(kind, q.object);
  auto* wait = ::new (runtime_resource()->allocate(sizeof(event_wait)))
      event_wait{{kind, q.object, to, q.what == question::arrive ? q.first : 0}};
  const event_answer a = pages_.ask(q, wait);
  refresh_pinned();
  // Unless answered() has been called with another answer meanwhile.
  if (wait->last.is == event_answer::kind::asked) wait->last = a;
  return wait;
}

/// Waits for an answer other than the last one. Until the home's first answer, this rank rings at
/// it. Once the home has answered that the fiber waits, it owes nothing.
void rank_memory::wait_for_answer(event_wait& w) {
  const event_answer::kind before = w.last.is;
  const bool is_asked = before == event_answer::kind::asked;
  wait_for(w.queue, w.queue.object, is_asked, w.queue.home != job.me ? w.queue.home : next_rank(),
           [&] { return w.last.is != before; });
  running_piece()->runs_frozen = w.last.is == event_answer::kind::waits;
}

std::uint64_t rank_memory::ask(const event_question& q, waits_at kind) {
  event_wait* wait = begin_to_ask(q, kind);
  while (wait->last.is == event_answer::kind::asked || wait->last.is == event_answer::kind::waits)
    wait_for_answer(*wait);
  const event_answer a = wait->last;
  runtime_resource()->deallocate(wait, sizeof(event_wait));
  if (a.is == event_answer::kind::lost) throw_event_lost(kind, q.object);
  if (a.is == event_answer::kind::refused)
    throw error(
        format("arrive_and_wait(%llu) at a sojourn::shared::counted_barrier (0x%llx) where others "
               "wait for %llu fibers: all of those that meet name the same number",
               static_cast<unsigned long long>(q.first), static_cast<unsigned long long>(q.object),
               static_cast<unsigned long long>(a.value)));
  return a.value;
}

void rank_memory::wait_for_condition(std::uint64_t condition, std::uint64_t l) {
  note_ran();
  const auto* const held = static_cast<const shared_lock*>(pages_.lock_holder(l));
  if (held == nullptr)
    throw error(format(
        "a fiber waits in a sojourn::shared::condition_variable (0x%llx) with a mutex "
        "(0x%llx) that no fiber of rank %d holds: lock it first",
        static_cast<unsigned long long>(condition), static_cast<unsigned long long>(l), job.me));
  // Kept, because the frames that locked the mutex may be older than the frames that wait.
  const std::uint64_t under = held->under;
  const std::uint64_t locked_at = held->locked_at;
  event_wait* wait =
      begin_to_ask({.what = question::listen, .object = condition}, waits_at::shared_condition);
  // The home must know of this fiber before the mutex is unlocked, so that no notification after
  // that misses it.
  while (wait->last.is == event_answer::kind::asked) wait_for_answer(*wait);
  const bool unlocks = wait->last.is != event_answer::kind::lost;
  if (unlocks) unlock(l, false);
  while (wait->last.is == event_answer::kind::waits) wait_for_answer(*wait);
  const bool is_lost = wait->last.is == event_answer::kind::lost;
  runtime_resource()->deallocate(wait, sizeof(event_wait));
  if (unlocks) {
    lock(l, locked_at);
    static_cast<shared_lock*>(pages_.lock_holder(l))->under = under;
  }
  if (is_lost) throw_event_lost(waits_at::shared_condition, condition);
}

bool rank_memory::barrier() {
  note_ran();
  if (!takes_part()) refuse_fiber("shared::barrier()");
  require_all_ranks("a sojourn::shared::barrier()");
  // Read before arriving, because the last arrival may end the barrier at once.
  const std::uint64_t before = barriers_left_;
  pages_.arrive(is_guest());
  // No ringing at a barrier: the ranks that this fiber waits for owe no answer, they have not
  // arrived.
  wait_for(at_barrier_, 0, false, job.me == 0 ? next_rank() : 0,
           [&] { return barriers_left_ != before; });
  // Pinned pages are otherwise refreshed when a message has come; a barrier may be left without
  // one.
  refresh_pinned();
  if (barriers_left_ == before) [[unlikely]]
    require_all_ranks("a sojourn::shared::barrier()");
  if (!pages_.is_at_ease()) exchange_pages();
  // Since then this rank may have left further barriers, at which others arrived for this fiber:
  // see arrive_for_absent().
  return (incomplete_ >> (barriers_left_ - before - 1) & 1) == 0;
}

// Sends nothing: the threads of a rank see each other's stores.
void rank_memory::local_barrier() {
  note_ran();
  if (++at_local_barrier_count_ >= of_rank_) {
    at_local_barrier_count_ = 0;
    ++local_barriers_left_;
    return wake_all(at_local_barrier_);
  }
  const std::uint64_t before = local_barriers_left_;
  wait_for(at_local_barrier_, 1, false);
  if (local_barriers_left_ == before) [[unlikely]]
    require_all_ranks("a sojourn::shared::local_barrier()");
}

// --- Who takes part in barriers

namespace {

std::uint64_t own_frame() { return reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)); }

}  // namespace

bool rank_memory::is_guest() const { return addresses.stacks_home(own_frame()) != job.me; }

bool rank_memory::takes_part() const {
  if (is_guest()) return true;
  if (of_rank_ != 0) return numbers_.contains(sojourn::self().id());
  return slots.is_main(slots.index_of(own_frame())) ? main_takes_part_
                                                    : members_.contains(sojourn::self().id());
}

void rank_memory::refuse_fiber(const char* what) const {
  throw error(std::string(what) +
              (of_rank_ == 0 ? " is called by a fiber that takes no part in it: outside of "
                               "shared::run_threads() only the main fibers of all ranks do"
                             : " is called by a fiber that takes no part in it: as long as "
                               "shared::run_threads() runs, its threads do"));
}

void rank_memory::member_joins(std::uint32_t fibers) {
  if (of_rank_ != 0 || !takes_part()) refuse_fiber("barrier_join()");
  if (fibers == 0) return;
  ask({.what = question::join, .first = fibers}, waits_at::shared_barrier);
}

void rank_memory::member_is_here() {
  const std::uint64_t id = sojourn::self().id();
  if (id == 0 || is_guest() || of_rank_ != 0)
    throw error(
        "barrier_here() is for threads that take part in shared::barrier() from now on: call it in "
        "a thread, on the rank where it has begun, and outside of shared::run_threads()");
  if (!members_.insert(id).second)
    throw error("barrier_here() in a thread that takes part in shared::barrier() already");
  pages_.fiber_came();
}

void rank_memory::member_is_gone() {
  if (of_rank_ != 0 || is_guest() || !takes_part())
    throw error(
        "barrier_gone() is for fibers that have taken part in shared::barrier() until now: call it "
        "on the rank where the fiber has begun, and outside of shared::run_threads()");
  if (members_.erase(sojourn::self().id()) == 0) main_takes_part_ = false;
  pages_.fiber_went();
  ask({.what = question::leave}, waits_at::shared_barrier);
}

bool rank_memory::takes_part(const piece* p) const {
  if (addresses.stacks_home(p->hi - 1) != job.me) return p->is_thread_base();
  const bool is_main = slots.is_main(p->slot) && p->hi == slots.high(p->slot);
  if (of_rank_ != 0) return p->is_thread_base() && numbers_.contains(p->thread);
  return is_main ? main_takes_part_ : p->is_thread_base() && members_.contains(p->thread);
}

barrier_attendance rank_memory::attendance() const {
  const std::size_t members =
      of_rank_ != 0 ? static_cast<std::size_t>(of_rank_) : members_.size() + main_takes_part_;
  const std::uint32_t guests = pages_.guests_arrived();
  return {static_cast<std::uint32_t>(members), pages_.arrived() - guests, guests};
}

std::uint64_t rank_memory::begin_break() {
  pages_.complete_for_others();
  return barriers_left_ + 1;
}

void rank_memory::arrive_for_absent(std::uint64_t number) {
  if (barriers_left_ < number) {
    const std::size_t all = members_.size() + (main_takes_part_ ? 1 : 0);
    for (std::size_t absent = all - pages_.arrived(); absent != 0; --absent) pages_.arrive(false);
    refresh_pinned();
  }
  while (barriers_left_ < number) {
    require_all_ranks("the end of a sojourn::shared::barrier()");
    wait_for(at_barrier_, 0, false);
  }
}

// --- Losses

void rank_memory::fail_sync_waits() {
  pages_.give_up_locks([](waiter fiber) {
    auto* lock = static_cast<shared_lock*>(fiber);
    while (!lock->empty()) make_ready(take_waiter(*lock), resumed::here);
  });
  pages_.give_up_events([](waiter fiber) {
    auto* wait = static_cast<event_wait*>(fiber);
    wait->last = {event_answer::kind::lost};
    while (!wait->queue.empty()) make_ready(take_waiter(wait->queue), resumed::here);
  });
  // The fibers that are woken see that no barrier was left meanwhile.
  at_local_barrier_count_ = 0;
  for (waiters* queue : {&at_barrier_, &at_local_barrier_})
    while (!queue->empty()) make_ready(take_waiter(*queue), resumed::here);
}

void rank_memory::throw_mutex_lost(std::uint64_t l) {
  throw_rank_lost(first_lost_rank(), format("a sojourn::shared::mutex (0x%llx) that is not here",
                                            static_cast<unsigned long long>(l))
                                         .c_str());
}

void rank_memory::throw_event_lost(waits_at kind, std::uint64_t object) {
  throw_rank_lost(first_lost_rank(), format("a sojourn::%s (0x%llx)", object_name(kind),
                                            static_cast<unsigned long long>(object))
                                         .c_str());
}

}  // namespace sojourn::detail::pages
