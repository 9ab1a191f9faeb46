// SPDX-License-Identifier: Apache-2.0
#include "fiber/ticket_waits.hpp"

#include <utility>

#include "fiber/ready_queue.hpp"
#include "fiber/timers.hpp"
#include "fiber/wait_clock.hpp"

namespace sojourn::detail {

namespace {
// For wake_to_stand_by. `waited_for_last`: the ticket of the last wait that it has not woken yet,
// or 0. `stands_by`: the ticket of the wait that it woke last.
ticket_id waited_for_last = 0;
ticket_id stands_by = 0;
}  // namespace

bool wake_to_stand_by() {
  ticket* t = find_ticket(std::exchange(waited_for_last, 0));
  if (t == nullptr || t->waiter == nullptr || t->asked < 0 || !t->waiter->is_in_place()) {
    return false;
  }
  t->waiter->waits = wait_cause::none;
  make_ready(std::exchange(t->waiter, nullptr), resumed::anywhere);
  stands_by = t->id;
  return true;
}

void begin_wait(piece* left, void* awaited) {
  auto* t = static_cast<ticket*>(awaited);
  piece* waiter = t->waiter = block(left);
  wait_times.begins(waiter);
  waiter->waits = wait_cause::ticket;
  waiter->waits_for = t->id;
  if (waiter->waits_for != stands_by) waited_for_last = waiter->waits_for;
}

namespace {

void* as_context(ticket_id id) { return reinterpret_cast<void*>(id); }
ticket_id as_ticket(const void* context) { return reinterpret_cast<ticket_id>(context); }

/// `notify` of a ticket that count_for() was called with.
void one_of_all(void* context) {
  ticket* all = find_ticket(as_ticket(context));
  if (all == nullptr) return;
  const auto missing = reinterpret_cast<std::uintptr_t>(all->notify_context) - 1;
  all->notify_context = reinterpret_cast<void*>(missing);
  if (missing == 0) complete_ticket(all, nullptr, 0);
}

/// `notify` of a ticket that watch_for() was called with.
void first_of_several(void* context) {
  ticket* first = find_ticket(as_ticket(context));
  if (first == nullptr) return;
  if (first->waiter != nullptr) cancel_timer(first->waiter);
  complete_ticket(first, nullptr, 0);
}

}  // namespace

void count_for(ticket* t, const ticket* all) {
  t->notify = one_of_all;
  t->notify_context = as_context(all->id);
}

void watch_for(ticket* t, const ticket* first) {
  t->notify = first_of_several;
  t->notify_context = as_context(first->id);
}

void stop_watching(ticket* t) {
  if (t->notify == first_of_several) t->notify = nullptr;
}

ticket_id waits_for_several(const ticket& t) {
  const bool waits = t.notify == one_of_all || t.notify == first_of_several;
  return waits ? as_ticket(t.notify_context) : 0;
}

bool has_reader(const ticket& t) {
  if (t.notify != first_of_several) return t.waiter != nullptr || t.notify != nullptr;
  // The note does not count if its fiber was woken to move: the fiber leaves such notes behind.
  const ticket* first = find_ticket(as_ticket(t.notify_context));
  return first != nullptr && first->waiter != nullptr;
}

void wait_for_first(ticket* first, std::uint64_t deadline_ns) {
  struct wanted {
    ticket* first;
    std::uint64_t deadline_ns;
  } of{first, deadline_ns};
  leave_to_wait(
      [](piece* left, void* context) {
        const wanted copy = *static_cast<wanted*>(context);
        begin_wait(left, copy.first);
        set_timer(copy.first->waiter, copy.deadline_ns);
      },
      &of);
}

void stop_waiting(const piece* p) {
  if (ticket* t = find_ticket(p->waits_for); t != nullptr) t->waiter = nullptr;
}

}  // namespace sojourn::detail
