// SPDX-License-Identifier: Apache-2.0
// Reading results, on any rank. A ticket never moves: a fiber that has moved asks the ticket's
// home, once, to forward the result. So each result is always known on one rank, and no message
// runs after another.
#pragma once

#include <cstddef>

#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct ticket;

/// Registers the handler of results that are to be forwarded. Before any message arrives.
void attach_forwarding();
/// Sends the result of `id`, once there is one, to `to`, a ticket of another rank.
void forward_result(ticket_id id, ticket_id to);
/// The ticket, on another rank, that waits for the result of `t`; 0 when none does.
ticket_id forwarded_to(const ticket& t);

/// Has the result of `id` written to `into` when it comes, perhaps in parts, until wait_landed() or
/// settle_landing() has returned. Requires: the result is not here yet; the place lies in memory of
/// this rank that does not travel.
void land_in_place(ticket_id id, void* into, std::size_t bytes);
/// Suspends until the result is in its place. Throws what came instead of it. The ticket is free in
/// either case.
void wait_landed(ticket_id id, std::size_t bytes);
/// The same, but drops what came instead of the result.
void settle_landing(ticket_id id);

}  // namespace sojourn::detail
