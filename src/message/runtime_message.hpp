// SPDX-License-Identifier: Apache-2.0
// Which messages there are. The runtime's own messages have the same numbers in all programs of a
// job. After them come the numbers of handlers: first the runtime's handlers that run as users'
// handlers do, then the users'.
#pragma once

#include <cstdint>

#include "sojourn/counters.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

/// Messages of the runtime itself; the numbers of users' handlers follow. The runtime's handlers
/// never suspend, and consume the message. Requests are handled on the dispatcher's stack; replies
/// also on the stack of a fiber that waits for one, and replies about shared memory in the handler
/// of a doorbell's signal, in the middle of the program's code.
enum class runtime_message : std::uint16_t {
  result,          ///< ticket, bytes: completes a ticket.
  piece,           ///< A piece of a stack.
  piece_to_read,   ///< A piece that the receiver reads from the sender's memory.
  piece_part,      ///< A part of a piece whose sender's memory the receiver may not read.
  extent_returns,  ///< Memory of a thread's heap goes back to the rank it came from.
  forward_result,  ///< Asks a ticket's home to send its result to another ticket.
  drop_ticket,     ///< Nobody will ask for a ticket any more.
  collective,      ///< A contribution or a result of a collective operation.
  scope_returns,   ///< Weight that a finish scope gets back.
  scope_failed,    ///< An exception for a finish scope.
  scope_wants,     ///< Asks a finish scope's home for weight.
  bulk_put,
  bulk_get,
  stop_asked,  ///< Asks a stop source's home to tell this rank.
  stop_told,
  check_copy,      ///< Checked mode: tells the owner of a copy of its memory.
  thread_ask,      ///< Asks a thread, wherever it is, to move.
  thread_moved,    ///< To a thread's home: where its base has gone.
  thread_query,    ///< To a thread's home: is the thread on its way to the asking rank?
  thread_stale,    ///< The answer when the thread is not on its way.
  steal_ask,       ///< Asks a rank for threads (balance.hpp).
  steal_nothing,   ///< The answer of a rank that has none to spare.
  load_told,       ///< How many threads a rank has to run.
  threads_handed,  ///< Threads that have not started.
  kept_read,       ///< Asks a rank for a part of the values it keeps (marshalled.hpp).
  kept_ended,      ///< The rank need keep those values no longer.
  entry_told,      ///< The answer to a name: where its function is (rpc/named.cpp).
  forks_here,      ///< The sender forks, and asks to be told when the receiver is hungry
                   ///< (migrate/steal.hpp).
  hunger,          ///< The sender, on another host, has nothing to do.
  object_copies,   ///< About copies of objects, and objects that move (object/).
  object_place,    ///< Where an object is that the receiver has looked for elsewhere.
  way_cost,        ///< What a migration has cost that a call had chosen (object/call_places.hpp).
  replicas,        ///< About replicated objects (object/replicated.cpp).
  shared_memory,   ///< About pages, locks and barriers of the shared region (shared/).
  count_
};
/// The name of a kind of message, and which counters count it.
struct message_kind {
  runtime_message kind;
  const char* name;  ///< As the report of a malformed message calls it.
  // The counters of these messages and of their bytes (docs/counters.md); null: they are not
  // counted.
  std::uint64_t counters::* messages;
  std::uint64_t counters::* bytes;
};
/// Requires: not count_.
const message_kind& description_of(runtime_message kind);

/// How many messages a rank has sent and received, those to itself included. When none is in
/// flight, the sums of both over the job are equal.
struct traffic {
  std::uint64_t sent;
  std::uint64_t received;
};

/// True when a message of this kind tells the program nothing: no fiber gets a value by it, or may
/// rely on what happened before it. So it is no acquire, and needs no news of shared memory before
/// it.
constexpr bool is_no_acquire(runtime_message kind) {
  using enum runtime_message;
  return kind == extent_returns || kind == drop_ticket || kind == steal_ask ||
         kind == steal_nothing || kind == load_told || kind == object_place || kind == way_cost ||
         kind == kept_ended || kind == forks_here || kind == hunger;
}

/// The request handlers of the runtime. They are the first of the table, so that they have the same
/// numbers in all programs of a job. They run as users' handlers do.
enum class fixed_handler : std::uint16_t {
  named_function,  ///< A call of a function by its name (rpc/named.hpp).
  named_method,    ///< The same for a method, whose frames stay.
  copy_or_call,    ///< Asks for a copy of an object, or else for the result of a call (object/).
  thread_home,     ///< Asks a thread's home (migrate/thread/thread_home.cpp).
  count_
};
constexpr std::uint16_t handler_number(fixed_handler which) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(runtime_message::count_) +
                                    static_cast<unsigned>(which));
}
/// The number of the first handler of the table: fixed ones, then the program's.
inline constexpr std::uint16_t first_user_handler =
    static_cast<std::uint16_t>(runtime_message::count_);

/// Flags of a message.
inline constexpr std::uint16_t flag_exception = 1;  ///< The bytes of a result are an exception.
inline constexpr std::uint16_t flag_scope = 2;      ///< A scope_ticket follows the payload.
inline constexpr std::uint16_t flag_thread = 4;  ///< A piece is of a thread (thread_trailer.hpp).
inline constexpr std::uint16_t flag_kept = 8;    ///< A result is kept by the rank it came from.

/// What a message says about the finish scope it belongs to; the last 16 bytes of its payload.
struct scope_ticket {
  ticket_id scope;
  std::uint64_t weight;
};

}  // namespace sojourn::detail
