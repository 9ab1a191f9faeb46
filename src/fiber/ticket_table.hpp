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

/// `exception`: as bytes, which may have come from another rank. `kept`: a value whose rank keeps a
/// part of it until it is taken or dropped. `thrown`: an exception of this rank, as itself.
enum class outcome : std::uint8_t { none, value, exception, kept, thrown };

/// Who takes a result: whoever asks for the ticket; nobody, so that the ticket is freed when the
/// result comes; or memory of this rank, as the ticket's `landing` says, which may be being filled.
enum class taker : std::uint8_t { asker, nobody, memory, filled_memory };

/// Where a result is copied when it comes, without a reader. Lies in the ticket.
struct landing {
  void* into;
  std::uint64_t bytes;
  /// Called once the bytes are there; the ticket is free then. Or null.
  void (*landed)(void* context) = nullptr;
  /// Called instead for an exception, or a result that has not `bytes` bytes: the ticket keeps the
  /// result, for a reader again. Or null.
  void (*failed)(void* context, ticket_id id) = nullptr;
  void* context = nullptr;
  /// The place is there until one of the two would be called, so the bytes may come into it one by
  /// one.
  bool stays = false;
};

struct ticket {
  static constexpr std::size_t inline_bytes = 64;
  /// A value of `asked`: this result of a thread has a reader already, who may now be on its way to
  /// another rank.
  static constexpr std::int32_t joined = -2;
  /// A value of `asked`: not for a result, but for the first of several results, or for a time.
  static constexpr std::int32_t for_first = -3;

  ticket_id id = 0;  ///< 0 while it is not open.
  std::uint32_t generation = 1;
  std::uint32_t next_free = 0;
  taker taken_by = taker::asker;
  outcome has = outcome::none;
  std::int16_t thread_at = -1;  ///< For a thread's result: the rank its base is at, or goes to.
  std::int32_t asked = -1;  ///< Rank that has room reserved for the answer; -1: none; or `joined`,
                            ///< or `for_first`.
  std::uint32_t bytes = 0;
  std::uint32_t thread_moves = 0;  ///< How often the base had moved when it came to `thread_at`.
  piece* waiter = nullptr;
  void (*notify)(void*) = nullptr;
  void* notify_context = nullptr;
  /// Memory of `results` when the result does not fit in `small`; the address of `small` when that
  /// holds a std::exception_ptr. So free_ticket sees from this word alone if there is work to do.
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

/// One array that is touched only as far as it is used, so that an id holds an index into it.
struct ticket_array {
  static constexpr unsigned index_bits = 24;
  static constexpr std::uint32_t index_mask = (1u << index_bits) - 1;

  ticket* first = nullptr;
};
extern ticket_array tickets;

/// The ticket `id`, or null when it is not open (any more). Requires: at home here.
inline ticket* find_ticket(ticket_id id) {
  // An entry that was never used is zero, which is no id.
  ticket* t = tickets.first + (id & ticket_array::index_mask);
  return t->id == id && id != 0 ? t : nullptr;
}
inline bool ticket_is_open(ticket_id id) { return find_ticket(id) != nullptr; }

/// When the result of `t` comes, it goes where `there` says. Requires: the result is not here yet,
/// and nobody waits for it.
void land_result(ticket* t, const landing& there);
/// The place for a result of so many bytes that is about to come for `t`, and is to be written
/// there before it is completed; null when there is none that stays. Once for each ticket.
std::byte* begin_to_fill(ticket* t, std::size_t bytes);

/// A new ticket, for the answer to a request to rank `asked` (-1: to no request).
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

/// Writes all tickets. `sent_on_to`: to which other ticket the result of an awaited ticket is to be
/// sent on. `encoded`: the bytes of an exception that is kept as an object. load_tickets reads them
/// in the run that goes on from there, and calls `send_on` for each awaited ticket.
void save_tickets(file_writer& to, ticket_id (*sent_on_to)(const ticket& t),
                  std::vector<std::byte> (*encoded)(const std::exception_ptr& exception));
void load_tickets(file_reader& from, void (*send_on)(ticket_id id, ticket_id to));

/// Open tickets of this rank.
std::size_t tickets_open();
/// Calls visit(t, context) for each of them. For reports: takes time.
void each_open_ticket(void (*visit)(const ticket& t, void* context), void* context);

}  // namespace sojourn::detail
