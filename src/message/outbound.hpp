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

/// In a process that this rank has made by fork(): calls are refused from now on.
void leave_job();
/// From now on begin_request refuses ranks of other programs. Requires: programs are attached.
void close_to_other_programs();

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
/// The same when it has become the sender's turn: called by `go` of when_room().
std::byte* reserve_in_turn(int to, std::size_t bytes);
/// Suspends the running fiber until there is room.
std::byte* reserve_request(int to, std::size_t bytes);
/// Suspends the running fiber until there may be room for a request of `bytes`.
void wait_for_room(int to, std::size_t bytes);

/// A new ticket for an answer of `rank`, which counts as outstanding from now on.
ticket_id open_answer(int rank);

/// From now on the bundle for `to` holds calls: whatever else is sent there first sends the bundle.
void begin_to_hold_back(int to);
/// Sends what is bundled for `to`, if anything is. False when there is no room. Any stack.
bool try_send_bundle(int to);
/// The same, but suspends until there is room.
void send_bundle(int to);

/// As send_reply, of a long payload that is not copied (transport::lend). False, and nothing is
/// done, where it is to be copied.
bool lend_reply(int to, runtime_message kind, ticket_id ticket, const transport::loan& payload);
/// Counts a message of so many bytes to another rank. For those that are sent by commit_message;
/// replies are counted where they are sent.
void count_message(runtime_message kind, std::size_t payload);
/// Publishes what was reserved.
void commit_message(int to, message_class kind, runtime_message handler, std::uint16_t flags,
                    ticket_id ticket);

/// This rank has shared memory from now on. Whatever lets a fiber go on elsewhere is preceded by
/// what on_dispatch.tell sends.
void share_memory();
bool shares_memory();
/// This rank has shared memory, and the running fiber is writing a message: it may wait, but
/// nothing else may be sent of the request class, nor other fibers run, before it goes on.
bool is_writing_message();

/// While rounds are wanted, this rank is not idle, and a fiber whose calls are answered in place
/// lets the loop go round. Any stack.
void want_rounds(bool wanted);

/// `rank` has answered a call, and the room for that answer is free again.
void answered_by(int rank);

/// How many calls of this rank `rank` has not answered; and sets that number in a restored job.
std::uint32_t unanswered_by(int rank);
void restore_unanswered(int rank, std::uint32_t count);
/// Wakes the fibers that wait until earlier calls are answered; each of them looks again when it
/// runs.
void wake_callers();

/// Calls visit(waiter, to, context) for each piece that waits for room to send to rank `to`: a
/// message of its own, or itself.
void each_waiting_sender(void (*visit)(const piece* waiter, int to, void* context), void* context);

}  // namespace sojourn::detail
