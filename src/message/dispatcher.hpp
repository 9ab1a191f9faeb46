// SPDX-License-Identifier: Apache-2.0
// Where messages meet fibers: the loop that every rank runs, the table of handlers, and sending
// with back-pressure. What the messages mean is told by the floors above, which register handlers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fiber/scheduler.hpp"
#include "sojourn/detail/wire.hpp"
#include "transport/shm/shm_transport.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {

/// The transport of this build's ranks. Named by its final class, so that its short functions are
/// inlined; nothing outside `transport` uses more of it than the contract and has_room.
using active_transport = shm::shm_transport;
active_transport& wire();

/// Messages of the runtime itself; user's handlers follow. Their handlers run on the dispatcher,
/// never suspend, and consume the message.
enum class runtime_message : std::uint16_t {
  result,          ///< ticket, bytes: completes a ticket.
  piece,           ///< A stretch of stack.
  piece_to_read,   ///< One that the receiver reads where it lies.
  piece_part,      ///< A part of one that it may not read.
  extent_returns,  ///< Memory of a thread's heap goes back to the rank it is of.
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
  thread_query,    ///< To a thread's home: is it on its way to the asking rank?
  thread_stale,    ///< The answer, when it is not.
  steal_ask,       ///< Asks a rank for threads (balance.hpp).
  steal_nothing,   ///< The answer, when it has none to spare.
  load_told,       ///< How many threads a rank has to run.
  threads_handed,  ///< Threads that have not started.
  kept_read,       ///< Asks a rank for a part of what it keeps (marshalled.hpp).
  kept_ended,      ///< It need keep it no longer.
  entry_told,      ///< The answer to a name: where its function is (rpc/named.cpp).
  forks_here,      ///< Somebody forks on this rank (migrate/steal.hpp).
  count_
};
/// Request handlers of the runtime: the first of the table, so that they have the same numbers in
/// all programs of a job. They run as users' do.
enum class fixed_handler : std::uint16_t {
  named_function,  ///< A call of a function by its name (rpc/named.hpp).
  named_method,    ///< The same of a method, whose frames stay.
  thread_home,     ///< Asks a thread's home (migrate/threads.cpp).
  count_
};
/// Requires: the dispatcher is not attached yet.
void on_request(fixed_handler which, request_handler handler, bool may_migrate);
constexpr std::uint16_t handler_number(fixed_handler which) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(runtime_message::count_) +
                                    static_cast<unsigned>(which));
}
/// As begin_request, of a message for a fixed handler: to ranks of all programs.
outgoing begin_fixed_request(int to, std::size_t payload_bytes, bool answered);

using runtime_handler = void (*)(arrival& message);
/// Sets the handler of a kind of messages, which have `least` bytes or more: shorter ones end the
/// rank with a report and never come to the handler. message_reader.hpp has a form that names what
/// they begin with.
void on_message(runtime_message kind, runtime_handler handler, std::size_t least = 0);

/// Flags of a message.
inline constexpr std::uint16_t flag_exception = 1;  ///< The bytes of a result are an exception.
inline constexpr std::uint16_t flag_scope = 2;      ///< A scope_ticket follows the payload.
inline constexpr std::uint16_t flag_thread = 4;     ///< A piece is part of a thread (threads.hpp).
inline constexpr std::uint16_t flag_kept = 8;       ///< A result is kept by the rank it came from.

/// What a message says of the finish scope it belongs to; the last 16 bytes of its payload.
struct scope_ticket {
  ticket_id scope;
  std::uint64_t weight;
};

/// Set by the floor above: takes weight from a scope for a message, and gives what a message
/// brought to this rank's part of the scope.
struct scope_wire {
  scope_ticket (*take)(void* scope);        ///< Suspends when there is none here.
  std::uint64_t (*available)(void* scope);  ///< What take would give without suspending, or 0.
  void* (*give)(const arrival& message, const scope_ticket& ticket);
  /// Until the running fiber's scope, if it has one, has some to give. Suspends; the fiber may be
  /// on another rank then.
  void (*gather)();
};
extern scope_wire scopes_on_wire;

/// Requires: the region and the segment are mapped, handlers registered.
void attach_dispatcher(std::byte* transport_memory, int rank, int ranks, int cores);

/// From now on begin_request refuses ranks of other programs. Requires: programs are attached.
void close_to_other_programs();

/// Runs fibers and handlers until done() holds.
void dispatch_until(bool (*done)());

/// Sends a message of the reply class; copies `bytes`. Never suspends: when there is no room the
/// message waits in this rank's memory. Any stack.
void send_reply(int to, runtime_message kind, std::uint16_t flags, ticket_id ticket,
                const void* bytes, std::size_t size);
/// The same in two steps: room for its bytes, and sending what was written there. Nothing else is
/// sent between the two.
std::byte* reserve_reply(int to, runtime_message kind, std::size_t size);
void commit_reply(int to, runtime_message kind, std::uint16_t flags, ticket_id ticket);

/// Room for a request, now or null; for the dispatcher. Earlier senders go first.
std::byte* try_reserve_request(int to, std::size_t bytes);
/// Calls go(context) on the dispatcher once there is room for a request of `bytes`.
/// `waiter` waits for it meanwhile.
void when_room(int to, std::size_t bytes, void (*go)(void*), void* context, piece* waiter);
/// Suspends the running fiber until there is room.
std::byte* reserve_request(int to, std::size_t bytes);
/// Suspends the running fiber until there may be room for a request of `bytes`.
void wait_for_room(int to, std::size_t bytes);
/// Ranks that have ended, as far as others have been told: waits for them fail. Once.
struct losses {
  const std::atomic<std::uint32_t>* count;  ///< How many.
  bool (*is_lost)(int rank);
  void (*fail_waits)(int rank);  ///< Of the floor above; on the scheduler's stack.
};
void attach_losses(const losses& told);
bool is_lost(int rank);
/// One that is known to be lost, or no_rank.
int first_lost_rank();
/// Throws rank_lost: `to_do` needs the rank.
[[noreturn]] void throw_rank_lost(int rank, const char* to_do);

/// A new ticket for an answer of `rank`, which is counted as one that is not there yet.
ticket_id open_answer(int rank);

/// Room for a bundle to `to`, which may be this rank; null when there is none. And its commit.
std::byte* try_reserve_bundle(int to, std::size_t bytes);
void commit_bundle(int to, runtime_message handler, std::uint16_t flags);
/// Says whether a bundle of calls for `to` waits: whatever else is sent there sends it first.
void hold_back(int to, bool held);
/// Publishes what was reserved.
void commit_message(int to, message_class kind, runtime_message handler, std::uint16_t flags,
                    ticket_id ticket);

/// Sets what is called once a round of the loop; it returns how much it did. `idle`: there was
/// nothing else to do. Scheduler's stack.
void call_each_round(int (*fn)(bool idle));
/// Has `fn` called once, besides, in this round or the next. For signal handlers on the worker
/// thread: what interrupts call_each_round may be forgotten, so whoever needs it asks again.
void call_next_round(void (*fn)(bool idle));
/// Called when this rank has had nothing to do for about a microsecond, and when it has again. It
/// sends nothing.
void call_when_idle(void (*fn)(bool idle));
/// As long as it is wanted this rank is not idle, and a fiber whose calls are answered in place
/// lets the loop go round. Any stack.
void want_rounds(bool wanted);
/// The index of the handler that was entered last. Requires: it has not suspended.
std::uint16_t handler_entered();
/// True when `handler` starts threads (thread.hpp), from messages of so many bytes.
bool starts_thread(std::uint16_t handler, std::size_t bytes);
/// Runs a handler on a message that was kept: as one that has just arrived, but for consume(),
/// which it must not call. Scheduler's stack. The scope's count is the handler's.
void run_kept(std::uint16_t handler, const request& message, void* scope);

/// Delivers a reply from `rank` on this stack when it is the next thing to happen on this rank, so
/// that the fiber that waits for it need not be left. True when one was delivered.
bool take_reply_in_place(int rank);

/// An answered request's reply room is free again.
void answered_by(int rank);

/// How many calls of this rank another has not answered; and so in a run that goes on from there.
std::uint32_t unanswered_by(int rank);
void restore_unanswered(int rank, std::uint32_t count);
/// Those that wait until another rank has answered earlier calls look again when they run.
void wake_callers();

/// Messages that other ranks' work depends on: sent to and received from any rank, this one
/// included, collective ones apart; equal job-wide when nothing is in flight.
struct traffic {
  std::uint64_t sent;
  std::uint64_t received;
};
traffic traffic_so_far();
/// The same for collective messages.
traffic collective_traffic_so_far();
/// Nothing is left to do on this rank but to wait for messages.
bool dispatcher_idle();

/// Sets what is called around each sleep of this rank (transport::wait), on the scheduler's stack.
void call_around_sleep(void (*around_sleep)(bool falls_asleep));
/// Calls visit(waiter, to, context) for each piece that waits for room to send to rank `to`: its
/// own message, or itself.
void each_waiting_sender(void (*visit)(const piece* waiter, int to, void* context), void* context);

}  // namespace sojourn::detail
