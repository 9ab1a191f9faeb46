// SPDX-License-Identifier: Apache-2.0
// Sending: room and credit for messages, and who waits for these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/runtime_message.hpp"
#include "sojourn/detail/wire.hpp"
#include "transport/transport.hpp"

namespace sojourn::detail {

struct piece;

/// As begin_request, for a message to a fixed handler: the rank may run any program.
outgoing begin_fixed_request(int to, std::size_t payload_bytes, bool answered);

/// To be called in a process that this rank has made by fork(): refuses calls from now on.
void leave_job();
/// From now on begin_request refuses ranks of other programs. Requires: programs are attached.
void close_to_other_programs();

/// Sends a message of the reply class; copies `bytes`. Never suspends: when there is no room the
/// message waits in this rank's memory. Any stack.
void send_reply(int to, runtime_message kind, std::uint16_t flags, ticket_id ticket,
                const void* bytes, std::size_t size);
/// send_reply() in two steps: reserve_reply() gives room for the bytes, and commit_reply() sends
/// what was written there. Nothing else is sent between the two.
std::byte* reserve_reply(int to, runtime_message kind, std::size_t size);
void commit_reply(int to, runtime_message kind, std::uint16_t flags, ticket_id ticket);

/// Room for a request, or null when there is none now; for the dispatcher. Earlier senders go
/// first.
std::byte* try_reserve_request(int to, std::size_t bytes);
/// Calls go(context) on the dispatcher once there is room for a request of `bytes`. `waiter` is the
/// piece that waits meanwhile.
void when_room(int to, std::size_t bytes, void (*go)(void*), void* context, piece* waiter);
/// try_reserve_request() for a sender whose turn it is. To be called by `go` of when_room().
std::byte* reserve_in_turn(int to, std::size_t bytes);
/// Suspends the running fiber until there is room.
std::byte* reserve_request(int to, std::size_t bytes);
/// Suspends the running fiber until there may be room for a request of `bytes`.
void wait_for_room(int to, std::size_t bytes);

/// A new ticket for an answer of `rank`, which counts as outstanding from now on.
ticket_id open_answer(int rank);

/// To be called when the bundle for `to` gets its first call: from now on, whatever else is sent
/// there sends the bundle first.
void begin_to_hold_back(int to);
/// Keeps a full bundle in memory, for which there was no room, and which is sent when there is.
/// False when there are too many such bundles.
bool put_bundle_aside(int to);
/// Sends those; false when there is no room for all.
bool send_late_bundles(int to);
/// Sends what is bundled for `to`, if anything is. False when there is no room. Any stack.
bool try_send_bundle(int to);
/// The same, but suspends until there is room.
void send_bundle(int to);

/// Room for a message of calls, as a bundle is, behind what is bundled for that rank. Null when
/// there is none now, or others come first.
std::byte* room_for_run(int to, std::size_t bytes);
/// Sends the runs that were written there; `bytes` are without the weight, for which there is room
/// behind them.
void commit_runs(int to, std::byte* room, std::size_t bytes, const scope_ticket& weight,
                 bool in_scope);

/// As send_reply, for a long payload that is not copied (transport::lend). Returns false, and does
/// nothing, if the payload has to be copied.
bool lend_reply(int to, runtime_message kind, ticket_id ticket, const transport::loan& payload);
/// Counts a message of so many bytes to another rank. To be called for messages that commit_message
/// sends; replies are counted where they are sent.
void count_message(runtime_message kind, std::size_t payload);
/// Sends the message for which room was reserved.
void commit_message(int to, message_class kind, runtime_message handler, std::uint16_t flags,
                    ticket_id ticket);

/// Says that this rank has shared memory from now on. From then on, what on_dispatch.tell sends
/// goes before each message that lets a fiber go on elsewhere.
void share_memory();
bool shares_memory();
/// True when this rank has shared memory and the running fiber is writing a message. The fiber may
/// then wait, but until it goes on nothing else of the request class may be sent, and no other
/// fiber may run.
bool is_writing_message();

/// While rounds are wanted, this rank does not count as idle, and a fiber whose calls are answered
/// in place lets the loop go round. Any stack.
void want_rounds(bool wanted);

/// `rank` has answered a call, and the room for that answer is free again.
void answered_by(int rank);

/// unanswered_by() says how many calls of this rank `rank` has not answered; restore_unanswered()
/// sets that number in a restored job.
std::uint32_t unanswered_by(int rank);
void restore_unanswered(int rank, std::uint32_t count);
/// Wakes the fibers that wait until earlier calls are answered; each of them looks again when it
/// runs.
void wake_callers();

/// Calls visit(waiter, to, context) for each piece that waits for room to rank `to`, to send a
/// message or to move there.
void each_waiting_sender(void (*visit)(const piece* waiter, int to, void* context), void* context);

}  // namespace sojourn::detail
