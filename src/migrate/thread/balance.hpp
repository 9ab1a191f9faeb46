// SPDX-License-Identifier: Apache-2.0
// Load balance: ready threads go from loaded ranks to idle ones. While it is on, a rank *keeps* the
// message that starts a thread until that thread's turn comes. A kept thread has no stack yet, so
// handing it to another rank costs only a few words. The newest kept thread starts first; the
// oldest is handed over first. Only when no thread is kept are started threads handed over: those
// that are ready, may leave by the gate (gate.hpp), and have run here since they came.
//
// A rank without work asks each other rank once. A rank with nothing to spare says so, remembers
// who asked, and hands threads over once it can. So no rank asks twice in vain, and a job without
// work sends no messages. Answers and threads are messages of different classes and may overtake
// each other, so an answer carries the number of handovers made before it. If more handovers than
// that have arrived, the answer is out of date, and its sender may be asked again.
#pragma once

#include <cstdint>

#include "fiber/piece.hpp"
#include "migrate/balance_record.hpp"
#include "sojourn/threads/balance.hpp"
#include "sojourn/threads/thread.hpp"

namespace sojourn::detail {

/// Registers the handlers and reads SOJOURN_BALANCE. Throws sojourn::error.
void attach_balance();
/// From now on threads are handed only to ranks of this rank's program. Requires: programs are
/// attached.
void balance_among_own_program();

/// Called when the body of a thread begins: stores in its piece `p` what load balance knows of it.
/// True when the thread must give its turn before its first statement.
bool thread_started(piece* p, const thread_options& options);

/// While `on`, nothing is handed over. Kept threads start until none is left, but stop before their
/// first statement: it could start more threads, without end.
void stand_still(bool on);
bool threads_are_kept();

}  // namespace sojourn::detail
