// SPDX-License-Identifier: Apache-2.0
// The tickets that are at home on this rank. How results reach them from elsewhere is no concern
// of this floor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct piece;
class file_writer;
class file_reader;

/// How a ticket holds a result. `exception`: as bytes, which may have come from another rank.
/// `kept`: a value of which a rank keeps a part until the value is taken or dropped. `thrown`: an
/// exception of this rank, as an object.
enum class outcome : std::uint8_t { none, value, exception, kept, thrown };

/// Who takes a result. `asker`: whoever asks for the ticket. `nobody`: the ticket is freed when the
/// result comes. `memory`: it goes to memory of this rank, as the ticket's `landing` says;
/// `filled_memory`: its bytes are already being written there.
enum class taker : std::uint8_t { asker, nobody, memory, filled_memory };

/// Where a result is copied when it comes, without a reader. Lies in the ticket.
struct landing {
  void* into;
  std::uint64_t bytes;
  /// Called once the bytes are there and the ticket is free; may be null.
  void (*landed)(void* context) = nullptr;
  /// Called instead for an exception, or a result of another length than `bytes`. The ticket then
  /// keeps the result for a reader. May be null.
  void (*failed)(void* context, ticket_id id) = nullptr;
  void* context = nullptr;
  /// The memory at `into` exists until `landed` or `failed` is called, so the bytes may be written
  /// to it as they come.
  bool stays = false;
};

struct ticket {
  static constexpr std::size_t inline_bytes = 64;
  /// A value of `asked`, for the result of a thread: a fiber joins the thread already, and may now
  /// be on its way to another rank.
  static constexpr std::int32_t joined = -2;
  /// A value of `asked`: the ticket is for no result, but for the first of several results, or for
  /// a time.
  static constexpr std::int32_t for_first = -3;

  ticket_id id = 0;  ///< 0 while it is not open.
  std::uint32_t generation = 1;
  std::uint32_t next_free = 0;
  taker taken_by = taker::asker;
  outcome has = outcome::none;
  std::int16_t thread_at = -1;  ///< For a thread's result: the rank its base is at, or goes to.
  std::int32_t asked = -1;      ///< The rank that has room reserved for the answer; or -1 (none),
                                ///< `joined` or `for_first`.
  std::uint32_t bytes = 0;
  std::uint32_t thread_moves = 0;  ///< How often the base had moved when it came to `thread_at`.
  piece* waiter = nullptr;
  void (*notify)(void*) = nullptr;
  void* notify_context = nullptr;
  /// The result, in memory of `results`, if it does not fit in `small`. The address of `small` if
  /// that holds a std::exception_ptr. So free_ticket sees by this word alone whether there is
  /// anything to free.
  void* large = nullptr;
  alignas(16) std::byte small[inline_bytes];

  /// True while `notify` is to be called when the result comes.
  bool is_awaited() const { return id != 0 && has == outcome::none && notify != nullptr; }
  const std::byte* data() const {
    return large != nullptr ? static_cast<const std::byte*>(large) : small;
  }
};
static_assert(sizeof(ticket) == 128);

/// Requires: once a process, before any other call.
void attach_tickets();

/// The tickets: one array, of which only the used part is ever touched. An id contains an index
/// into it.
struct ticket_array {
  static constexpr unsigned index_bits = 24;
  static constexpr std::uint32_t index_mask = (1u << index_bits) - 1;

  ticket* first = nullptr;
};
extern ticket_array tickets;

/// The ticket `id`, or null when it is not open, or not open any more. Requires: `id` is at home
/// here.
inline ticket* find_ticket(ticket_id id) {
  // An entry that was never used is all zeros, and 0 is no id.
  ticket* t = tickets.first + (id & ticket_array::index_mask);
  return t->id == id && id != 0 ? t : nullptr;
}
inline bool ticket_is_open(ticket_id id) { return find_ticket(id) != nullptr; }

/// When the result of `t` comes, it goes where `there` says. Requires: the result is not here yet,
/// and nobody waits for it.
void land_result(ticket* t, const landing& there);
/// To be called when the result of `t`, of so many bytes, is about to come. Returns the place where
/// its bytes may be written before the ticket is completed; null if `t` has no place that stays.
/// Once for each ticket.
std::byte* begin_to_fill(ticket* t, std::size_t bytes);

/// A new ticket, for the answer to a request to rank `asked` (-1: for no answer).
ticket* open_ticket(int asked);
void free_ticket(ticket* t);

/// Stores a result, once, and wakes whoever waits. A result for a ticket that has one is ignored.
void complete_ticket(ticket* t, const void* bytes, std::size_t size, outcome how = outcome::value);
/// The same with bytes in memory of `results`, which it takes over.
void complete_ticket_with(ticket* t, void* memory, std::size_t size, outcome how);
/// The same with an exception that was thrown on this rank: `thrown`.
void complete_ticket_thrown(ticket* t, const std::exception_ptr& exception);
/// The exception that complete_ticket_thrown stored. Requires: there is one.
const std::exception_ptr& thrown_of(const ticket& t);

/// Writes all tickets. `sent_on_to`: the other ticket to which the result of an awaited ticket is
/// to be sent on. `encoded`: the bytes of an exception that is kept as an object. load_tickets
/// reads the tickets in the run that goes on from there, and calls `send_on` for each awaited one.
void save_tickets(file_writer& to, ticket_id (*sent_on_to)(const ticket& t),
                  std::vector<std::byte> (*encoded)(const std::exception_ptr& exception));
void load_tickets(file_reader& from, void (*send_on)(ticket_id id, ticket_id to));

/// How many tickets of this rank are open.
std::size_t tickets_open();
/// Calls visit(t, context) for each of them. For reports: takes time.
void each_open_ticket(void (*visit)(const ticket& t, void* context), void* context);

}  // namespace sojourn::detail
