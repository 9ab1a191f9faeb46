// SPDX-License-Identifier: Apache-2.0
// Long stretches of stack, and the heaps that travel with threads: the message says where the bytes
// lie, and the receiver reads them there, in one copy, while the sender keeps them. Where the
// system lets no rank read another's memory, the sender sends them in parts: two copies.
#pragma once

#include "migrate/ship.hpp"

namespace sojourn::detail {

void attach_reading();

/// Has the other rank read the piece, which is suspended and nobody's any more.
void let_read(const departure& d);

/// A rank has ended: what was to be read there will not come, and whoever waits for its result gets
/// rank_lost. Scheduler's stack.
void fail_arrivals_from(int rank);

/// Bytes of a stack or a heap are on their way, from this rank or to it.
bool anything_is_read();

/// True when the piece is the base of a thread that has a heap.
bool has_heap(const piece* p);

}  // namespace sojourn::detail
