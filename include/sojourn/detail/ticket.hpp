// SPDX-License-Identifier: Apache-2.0
// Tickets: where results go. A ticket is made when a mark is cut or a remote request is sent,
// never on a fast path; it stays on the rank that made it, takes exactly one result, and knows who
// waits. Its id is job-unique and names its home, so a result finds it from anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

namespace sojourn::detail {

/// home rank : 16, generation : 24, index : 24. Zero is not a ticket.
using ticket_id = std::uint64_t;

constexpr int home_of(ticket_id id) { return static_cast<int>(id >> 48); }

/// A new ticket at home on this rank.
ticket_id ticket_open();
/// True when the result is here. Never suspends: away from home the result is asked for, and `id`
/// becomes a ticket of this rank.
bool ticket_ready(ticket_id& id);
/// Suspends until the result is here, copies its `bytes` bytes to `into` and frees the ticket; an
/// exception is rethrown instead. Works on any rank: away from home it asks home to forward.
void ticket_take(ticket_id id, void* into, std::size_t bytes);
/// The same for at most eight bytes, which it returns in the low bytes of a word. A caller that
/// ends with this call can jump to it, and so has no return, which would be mispredicted after the
/// wait.
std::uint64_t ticket_take_word(ticket_id id, std::size_t bytes);
/// Suspends until the result is here; does not take it. Away from home the result is fetched, and
/// `id` becomes a ticket of this rank.
void ticket_wait(ticket_id& id);
/// The tickets of several futures. Holds no memory of its own: the fiber that waits for them may
/// move to another rank meanwhile.
struct ticket_range {
  void* of;           ///< What `at` looks into.
  std::size_t count;  ///< How many futures there are.
  /// The ticket of the i-th future; null when that future holds its value. May throw.
  ticket_id* (*at)(void* of, std::size_t i);
};
/// Suspends, only once, until all results are here; takes none. Otherwise as ticket_wait for each.
void tickets_wait(const ticket_range& all);
/// Suspends until one of the results is here, or until `deadline_ns` (now_ns(); sleep.hpp), and
/// takes none; returns which one is here, the first of them if there are several, or count when
/// none is. Otherwise as ticket_wait for each. With a deadline that is past, other fibers run once.
std::size_t tickets_wait_any(const ticket_range& any, std::uint64_t deadline_ns);
/// The same without suspending: what tickets_wait_any would return without a wait.
std::size_t first_ticket_ready(const ticket_range& any);
/// Frees the ticket now or when its result comes. An exception that nobody asked for is dropped.
void ticket_drop(ticket_id id);
/// Calls notify(context) on the dispatcher when the result comes, or at once if it is here already.
/// Requires: the ticket is at home here; nobody else waits for it.
void ticket_on_ready(ticket_id id, void (*notify)(void*), void* context);

/// Sends a result to `id`, wherever that is at home. Never suspends; any stack. The first result
/// counts. A null `bytes` with size 0 is the result of a void function.
void send_result(ticket_id id, const void* bytes, std::size_t size);
void send_exception(ticket_id id, const std::exception_ptr& exception);

}  // namespace sojourn::detail
