// SPDX-License-Identifier: Apache-2.0
// Finish scopes: termination by weight. The rank that opened a scope, its home, mints weight. Every
// request and every migrating piece takes some along. A rank gives back what it holds when the last
// computation of the scope on that rank has ended. The scope is over when all weight is back and no
// computation of it runs at home. That costs one message for each rank and burst of calls, instead
// of an acknowledgement for each call. A finish with a window needs to know when each call is over:
// there each call that its body begins has such a scope, within that of the finish. (Mattern,
// Algorithms for distributed termination detection, 1987, credit recovery.)
#pragma once

#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

/// Registers the handlers of finish scopes. Before any message arrives.
void attach_scopes();
/// True when `ticket` is that of an open finish whose home is this rank.
bool is_finish(ticket_id ticket);
/// True when a finish scope has computations or a part of its weight on this rank.
bool finish_is_open();
/// The ticket of the finish scope that a piece refers to; 0 for none.
ticket_id finish_of(const void* scope);
/// A rank has ended: the finishes of this rank whose weight is out fail with rank_lost.
void fail_finishes(int rank);

}  // namespace sojourn::detail
