// SPDX-License-Identifier: Apache-2.0
// Long pieces, and the heaps that travel with threads: the message says where the bytes
// lie, and the receiver reads them there, in one copy, while the sender keeps them. Where the
// system lets no rank read another's memory, the sender sends them in parts: two copies.
#pragma once

#include "migrate/piece_message.hpp"

namespace sojourn::detail {

void attach_reading();

/// Has the rank `d.to` read the piece. Requires: the piece is suspended, and nothing here refers to
/// it any more.
void let_read(const departure& d);

/// `rank` has ended: pieces whose bytes were still coming from it will never be complete, so the
/// fibers that wait for their results get rank_lost. To be called on the scheduler's stack.
void fail_arrivals_from(int rank);

/// True while another rank may still read a heap that left this one, or bytes of a piece are coming
/// here in parts.
bool anything_is_read();

/// True when the piece is the base of a thread that has a heap.
bool has_heap(const piece* p);

}  // namespace sojourn::detail
