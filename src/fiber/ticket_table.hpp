// SPDX-License-Identifier: Apache-2.0
// The tickets that are at home on this rank. How results reach them from elsewhere is no concern
// of this floor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct piece;
class file_writer;
class file_reader;

/// `exception`: as bytes, which may have come from another rank. `kept`: a value whose rank keeps a
/// part of it until it is taken or dropped. `thrown`: an exception of this rank, as itself.
enum class outcome : std::uint8_t { none, value, exception, kept, thrown };

/// Who takes a result: whoever asks for the ticket; nobody, and it frees the ticket; or memory of
/// this rank, as its `landing` says.
enum class taker : std::uint8_t { asker, nobody, memory };

/// Where a result goes that nobody asks for by its ticket. Lies in the ticket.
struct landing {
  void* into;
  std::uint64_t bytes;
  void (*landed)(void* context);  ///< Told once the bytes are there; the ticket is free then.
  /// Told in its place, of an exception or of other than `bytes` bytes: the ticket has a reader
  /// again, and this result.
  void (*failed)(void* context, ticket_id id);
  void* context;
};

struct ticket {
  static constexpr std::size_t inline_bytes = 64;
  /// In `asked`: a thread's result has its reader, who may just be on its way to another rank.
  static constexpr std::int32_t joined = -2;

  ticket_id id = 0;  ///< 0 while it is not open.
  std::uint32_t generation = 1;
  std::uint32_t next_free = 0;
  taker taken_by = taker::asker;
  outcome has = outcome::none;
  std::int16_t thread_at = -1;  ///< Of a thread's result: the rank its base is at, or goes to.
  std::int32_t asked = -1;  ///< Rank whose reply room this request holds; -1: none; or `joined`.
  std::uint32_t bytes = 0;
  std::uint32_t thread_moves = 0;  ///< How often it has moved by then.
  piece* waiter = nullptr;
  void (*notify)(void*) = nullptr;
  void* notify_context = nullptr;
  /// Of `results`, when the result does not fit below. Where a std::exception_ptr lies below, that
  /// place: so that who frees a ticket looks at one word.
  void* large = nullptr;
  alignas(16) std::byte small[inline_bytes];

  /// Somebody who is no fiber is told of the result.
  bool is_awaited() const { return id != 0 && has == outcome::none && notify != nullptr; }
  const std::byte* data() const {
    return large != nullptr ? static_cast<const std::byte*>(large) : small;
  }
};
static_assert(sizeof(ticket) == 128);

/// Requires: once a process, before any other call.
void attach_tickets();

/// One array that is touched only as far as it is used, so that an id holds an index into it.
struct ticket_array {
  static constexpr unsigned index_bits = 24;
  static constexpr std::uint32_t index_mask = (1u << index_bits) - 1;

  ticket* first = nullptr;
};
extern ticket_array tickets;

/// The ticket `id`, or null when it is not open (any more). Requires: at home here.
inline ticket* find_ticket(ticket_id id) {
  // Entries never used are zero: no id.
  ticket* t = tickets.first + (id & ticket_array::index_mask);
  return t->id == id && id != 0 ? t : nullptr;
}
inline bool ticket_is_open(ticket_id id) { return find_ticket(id) != nullptr; }

/// The result of `t` lands there. Requires: it is not here yet, and nobody waits for it.
void land_result(ticket* t, const landing& there);

/// A new ticket, for the answer of a request to rank `asked` (-1: of none).
ticket* open_ticket(int asked);
void free_ticket(ticket* t);

/// Stores a result, once, and wakes whoever waits. A result for a ticket that has one is ignored.
void complete_ticket(ticket* t, const void* bytes, std::size_t size, outcome how = outcome::value);
/// The same with bytes in memory of `results`, which it takes over.
void complete_ticket_with(ticket* t, void* memory, std::size_t size, outcome how);
/// The same with an exception that was thrown on this rank: `thrown`.
void complete_ticket_thrown(ticket* t, const std::exception_ptr& exception);
/// Requires: `t` has it.
const std::exception_ptr& thrown_of(const ticket& t);

/// In checked mode: told of an exception that comes for a ticket which was dropped, with the code
/// that dropped it, kept in notify_context (set by the floor above). Null otherwise.
extern void (*on_dropped_exception)(const void* bytes, std::size_t size, std::uint64_t dropped_at);
/// Told of a kept result that comes for such a ticket. Never null when one comes.
extern void (*on_dropped_result)(const void* bytes, std::size_t size);

/// The action of what leaves to wait for the ticket `awaited`.
void block_for(piece* left, void* awaited);
/// Suspends the running piece until `t` has a result. Requires: nobody waits for it yet. Inline, as
/// leave() is.
[[gnu::always_inline]] inline void wait_for(ticket* t) {
  SOJOURN_CHECK(t->waiter == nullptr && t->notify == nullptr,
                "two fibers wait for one result: a future has one reader");
  leave_to_wait(block_for, t);
}

/// Nothing is to be done, so the fiber that waited last for another rank's answer waits on its own
/// stack, where it meets the answer a switch earlier: it becomes ready, once a wait. False when
/// there is none.
bool wake_to_stand_by();

/// Writes all tickets. `sent_on_to` tells to which other ticket the result of one goes when it is
/// there; `encoded` gives the bytes of an exception that has been kept as itself. In a run that
/// goes on from there, load_tickets has `send_on` told.
void save_tickets(file_writer& to, ticket_id (*sent_on_to)(const ticket& t),
                  std::vector<std::byte> (*encoded)(const std::exception_ptr& exception));
void load_tickets(file_reader& from, void (*send_on)(ticket_id id, ticket_id to));

/// Open tickets of this rank.
std::size_t tickets_open();
/// Calls visit(t, context) for each of them. For reports: takes time.
void each_open_ticket(void (*visit)(const ticket& t, void* context), void* context);

}  // namespace sojourn::detail
