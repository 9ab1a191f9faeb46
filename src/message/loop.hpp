// SPDX-License-Identifier: Apache-2.0
// The loop that every rank runs: looks for messages, runs what is ready, and sleeps when there is
// neither.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/runtime_message.hpp"
#include "transport/active_transport.hpp"

namespace sojourn::detail {

/// This rank's transport. Requires: attach_dispatcher.
active_transport& wire();

/// Requires: the region and the segment are mapped, handlers registered. `hosts`: null when all
/// ranks are on this one.
void attach_dispatcher(std::byte* transport_memory, int rank, int ranks, int cores,
                       const shm::several_hosts* hosts = nullptr);

/// Runs fibers and handlers until done() holds.
void dispatch_until(bool (*done)());

/// From now on the loop calls on_dispatch.each_round once a round.
void call_each_round();
/// Has the loop call on_dispatch.next_round once, in this round or the next. May be called by
/// signal handlers.
void call_next_round();

/// Delivers a reply from `rank` on the running stack, if nothing else has to be done first on this
/// rank. So the fiber that waits for the reply need not leave its stack. True when a reply was
/// delivered.
bool take_reply_in_place(int rank);

/// Delivers replies on the running stack until over() holds, and nothing else: no handler of a
/// request and no other fiber runs meanwhile.
void take_replies_until(bool (*over)(void* context), void* context);

/// Delivers some of the replies about shared memory that have come, and leaves other replies to the
/// loop. For a signal handler that has interrupted the program's own code on a fiber's stack; a
/// request that is half written there stays as it is. `what`: what the handler has interrupted;
/// nothing, if no handler calls this.
void take_replies_about_shared_memory(interrupted what);

/// The messages so far, without those of collective operations.
traffic traffic_so_far();
/// The same for collective messages.
traffic collective_traffic_so_far();

/// Whether this program may post (sojourn/waiting/post.hpp).
bool takes_posts();
/// open_posts() lets other threads post from now on. close_posts() ends that, and returns how many
/// posted functions will never run.
void open_posts();
int close_posts();

/// True when a message of this rank waits for room.
bool waits_for_room();

/// True when nothing is left to do on this rank but to wait for messages.
bool dispatcher_idle();

}  // namespace sojourn::detail
