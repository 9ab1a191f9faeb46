// SPDX-License-Identifier: Apache-2.0
// Where messages meet fibers: the loop that every rank runs, the table of handlers, and sending
// with back-pressure. What messages mean is known to the floors above, which register handlers.
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

/// Messages of the runtime itself; the numbers of users' handlers follow. The runtime's handlers
/// run on the dispatcher, never suspend, and consume the message.
enum class runtime_message : std::uint16_t {
  result,          ///< ticket, bytes: completes a ticket.
  piece,           ///< A stretch of stack.
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
  forks_here,      ///< Somebody forks on this rank (migrate/steal.hpp).
  count_
};
/// Request handlers of the runtime: the first of the table, so that they have the same numbers in
/// all programs of a job. They run as users' do.
enum class fixed_handler : std::uint16_t {
  named_function,  ///< A call of a function by its name (rpc/named.hpp).
  named_method,    ///< The same for a method, whose frames stay.
  thread_home,     ///< Asks a thread's home (migrate/thread_home.cpp).
  count_
};
/// Requires: the dispatcher is not attached yet.
void on_request(fixed_handler which, request_handler handler, bool may_migrate);
constexpr std::uint16_t handler_number(fixed_handler which) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(runtime_message::count_) +
                                    static_cast<unsigned>(which));
}
/// As begin_request, for a message to a fixed handler: the rank may run any program.
outgoing begin_fixed_request(int to, std::size_t payload_bytes, bool answered);

using runtime_handler = void (*)(arrival& message);
/// Sets the handler of messages of a kind, which have at least `least` bytes: a shorter one ends
/// the rank with a report and never reaches the handler. message_reader.hpp has a form that takes
/// the type of what such messages begin with.
void on_message(runtime_message kind, runtime_handler handler, std::size_t least = 0);

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

/// Set by the floor above: takes weight from a scope for a message, and adds the weight that a
/// message brought to this rank's part of its scope.
struct scope_wire {
  scope_ticket (*take)(void* scope);        ///< Suspends while this rank has no weight.
  std::uint64_t (*available)(void* scope);  ///< What take would give without suspending, or 0.
  void* (*give)(const arrival& message, const scope_ticket& ticket);
  /// Waits until the running fiber's scope, if there is one, has weight to give. Suspends; the
  /// fiber may be on another rank afterwards.
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

/// Room for a request, or null when there is none now; for the dispatcher. Earlier senders go
/// first.
std::byte* try_reserve_request(int to, std::size_t bytes);
/// Calls go(context) on the dispatcher once there is room for a request of `bytes`. `waiter` is the
/// piece that waits meanwhile.
void when_room(int to, std::size_t bytes, void (*go)(void*), void* context, piece* waiter);
/// Suspends the running fiber until there is room.
std::byte* reserve_request(int to, std::size_t bytes);
/// Suspends the running fiber until there may be room for a request of `bytes`.
void wait_for_room(int to, std::size_t bytes);
/// How this floor learns which ranks have ended; what waits for them fails, once for each rank.
struct losses {
  const std::atomic<std::uint32_t>* count;  ///< How many.
  bool (*is_lost)(int rank);
  void (*fail_waits)(int rank);  ///< Of the floor above; called on the scheduler's stack.
};
void attach_losses(const losses& told);
bool is_lost(int rank);
/// The rank that was the first to be known as lost, or no_rank.
int first_lost_rank();
/// Throws rank_lost, which says that `to_do` needs the rank.
[[noreturn]] void throw_rank_lost(int rank, const char* to_do);

/// A new ticket for an answer of `rank`, which counts as outstanding from now on.
ticket_id open_answer(int rank);

/// Room for a bundle to `to`, which may be this rank, or null when there is none now; and its
/// commit.
std::byte* try_reserve_bundle(int to, std::size_t bytes);
void commit_bundle(int to, runtime_message handler, std::uint16_t flags);
/// Says whether a bundle of calls for `to` waits: if so, whatever else is sent there first sends
/// the bundle.
void hold_back(int to, bool held);
/// Publishes what was reserved.
void commit_message(int to, message_class kind, runtime_message handler, std::uint16_t flags,
                    ticket_id ticket);

/// Sets what is called once a round of the loop; it returns how much it did. `idle`: there was
/// nothing else to do. Scheduler's stack.
void call_each_round(int (*fn)(bool idle));
/// Has `fn` called once, in addition, in this round or the next. For signal handlers on the worker
/// thread: if the signal interrupts call_each_round, its request may be lost, so the handler must
/// ask again.
void call_next_round(void (*fn)(bool idle));
/// Sets what is called when this rank has had nothing to do for about a microsecond, and when it
/// has something to do again. `fn` sends nothing.
void call_when_idle(void (*fn)(bool idle));
/// While rounds are wanted, this rank is not idle, and a fiber whose calls are answered in place
/// lets the loop go round. Any stack.
void want_rounds(bool wanted);
/// The index of the handler that was entered last. Requires: that handler has not suspended.
std::uint16_t handler_entered();
/// True when messages of `bytes` bytes to `handler` start threads (thread.hpp).
bool starts_thread(std::uint16_t handler, std::size_t bytes);
/// Runs a handler on a message that was kept, as if it had just arrived; the handler must not call
/// consume(). Takes over the caller's count in `scope`; releases it when the handler ends.
/// Scheduler's stack.
void run_kept(std::uint16_t handler, const request& message, void* scope);

/// Delivers a reply from `rank` on the running stack if nothing else is to be done first on this
/// rank, so that the fiber that waits for the reply need not be left. True when a reply was
/// delivered.
bool take_reply_in_place(int rank);

/// `rank` has answered a call, and the room for that answer is free again.
void answered_by(int rank);

/// How many calls of this rank `rank` has not answered; and sets that number in a restored job.
std::uint32_t unanswered_by(int rank);
void restore_unanswered(int rank, std::uint32_t count);
/// Wakes the fibers that wait until earlier calls are answered; each of them looks again when it
/// runs.
void wake_callers();

/// How many messages this rank has sent and received, those to itself included, collective ones
/// not. When none is in flight, the sums of both over the job are equal.
struct traffic {
  std::uint64_t sent;
  std::uint64_t received;
};
traffic traffic_so_far();
/// The same for collective messages.
traffic collective_traffic_so_far();
/// True when nothing is left to do on this rank but to wait for messages.
bool dispatcher_idle();

/// Sets what is called around each sleep of this rank (transport::wait), on the scheduler's stack.
void call_around_sleep(void (*around_sleep)(bool falls_asleep));
/// Calls visit(waiter, to, context) for each piece that waits for room to send to rank `to`: a
/// message of its own, or itself.
void each_waiting_sender(void (*visit)(const piece* waiter, int to, void* context), void* context);

}  // namespace sojourn::detail
