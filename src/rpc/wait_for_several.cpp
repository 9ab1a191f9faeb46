// SPDX-License-Identifier: Apache-2.0
// One wait for several results (detail/ticket.hpp): for all of them, or for the first, perhaps with
// a deadline. A ticket of this rank stands for the wait. The tickets of the results have notes that
// name it, and it wakes the fiber. The tickets of the results hold no address of the fiber, because
// it may move meanwhile.
#include <cstdint>

#include "base/check.hpp"
#include "fiber/ticket_waits.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/detail/ticket.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

namespace {

/// Makes `id` a ticket of this rank, and returns it. Never suspends.
ticket* ticket_here(ticket_id& id) {
  ticket_adopt(id);
  ticket* t = find_ticket(id);
  SOJOURN_CHECK(t != nullptr, "this result was already taken: a future is read once");
  return t;
}

/// Calls visit(t) for the ticket of each result that is not here.
template <class Visit>
void each_missing(const ticket_range& of, Visit visit) {
  for (std::size_t i = 0; i < of.count; ++i) {
    ticket_id* id = of.at(of.of, i);
    if (id == nullptr) continue;
    if (ticket* t = ticket_here(*id); t->has == outcome::none) visit(t);
  }
}

ticket* unread(ticket* t) {
  SOJOURN_CHECK(!has_reader(*t), "two fibers wait for the same future: only one may");
  return t;
}

/// Frees the ticket of a wait that is over. If the fiber has moved, the ticket is on another rank:
/// that rank is told to drop it, and is also sent an empty result, because a dropped ticket is
/// freed when a result arrives, and the true one may never come.
void end_wait(ticket_id id) {
  if (home_of(id) == job.me) return free_ticket(find_ticket(id));
  ticket_drop(id);
  send_result(id, nullptr, 0);
}

/// Ends watching the results whose tickets are on this rank. If the fiber has moved, the tickets
/// are on the rank that it has left, and the results will be asked for anew on this one.
void stop_watching_here(const ticket_range& any) {
  for (std::size_t i = 0; i < any.count; ++i) {
    const ticket_id* id = any.at(any.of, i);
    if (id == nullptr || home_of(*id) != job.me) continue;
    if (ticket* t = find_ticket(*id); t != nullptr) stop_watching(t);
  }
}

}  // namespace

void tickets_wait(const ticket_range& all) {
  ticket* waits = nullptr;
  std::uintptr_t missing = 0;
  each_missing(all, [&](ticket* t) {
    unread(t);
    if (waits == nullptr) waits = open_ticket(-1);
    count_for(t, waits);
    ++missing;
  });
  if (waits == nullptr) return;
  waits->notify_context = reinterpret_cast<void*>(missing);
  ticket_take(waits->id, nullptr, 0);
}

std::size_t first_ticket_ready(const ticket_range& any) {
  for (std::size_t i = 0; i < any.count; ++i) {
    ticket_id* id = any.at(any.of, i);
    if (id == nullptr || ticket_here(*id)->has != outcome::none) return i;
  }
  return any.count;
}

std::size_t tickets_wait_any(const ticket_range& any, std::uint64_t deadline_ns) {
  for (bool is_time = false;;) {
    const std::size_t ready = first_ticket_ready(any);
    if (ready != any.count || is_time) return ready;
    ticket* first = open_ticket(ticket::for_first);
    const ticket_id id = first->id;
    each_missing(any, [&](ticket* t) { watch_for(unread(t), first); });
    wait_for_first(first, deadline_ns);
    // The fiber may have been woken to move. It may be on another rank now, where it looks again.
    is_time = now_ns() >= deadline_ns;
    stop_watching_here(any);
    end_wait(id);
  }
}

}  // namespace sojourn::detail
