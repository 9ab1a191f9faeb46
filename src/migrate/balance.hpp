// SPDX-License-Identifier: Apache-2.0
// Load balance: ready threads go from loaded ranks to idle ones. While it is on, a thread that
// arrives at a rank is *kept*, as its message was, until its turn comes: until then it goes to
// another rank as a few words, without a stack. The newest starts first, the oldest goes first.
// Threads that have started go when nothing is kept: what is ready, passes the gate and has run
// since it came.
//
// A rank without work asks each other rank once. One that has nothing to spare says so and
// remembers who asked, and hands over when that changes: so nobody asks twice in vain, and a job
// without work is silent. Answers and threads go on different ways, so an answer says how much was
// handed over before it: when more has come, it is old, and the rank is asked again.
#pragma once

#include <cstdint>

#include "fiber/piece.hpp"
#include "sojourn/balance.hpp"
#include "sojourn/thread.hpp"

namespace sojourn::detail {

/// What load balance knows of a thread; travels with it.
struct balance_record {
  std::int16_t affinity = no_rank;     ///< The only rank that it is handed to.
  std::int16_t handed_from = no_rank;  ///< Who handed it over last.
  std::uint16_t handovers = 0;
  bool on_its_way = false;           ///< It is handed over, not moved by the program.
  std::uint64_t stays_until_ns = 0;  ///< Before, it does not go back (now_ns()).

  bool matters() const { return affinity != no_rank || handovers != 0; }
};

/// Registers the handlers and reads SOJOURN_BALANCE. Throws sojourn::error.
void attach_balance();
/// Hands threads to ranks of this program only. Requires: programs are attached.
void balance_among_own_program();

/// Tells the piece of a thread whose body begins what is known of the thread. True when it is to
/// give its turn before its first statement.
bool thread_started(piece* p, const thread_options& options);

/// While it stands still nothing is handed over; threads that are kept start, until none is, and
/// none goes on to its first statement: it might start others, and they others still.
void stand_still(bool on);
bool threads_are_kept();

/// A thread that has started, and that load balance chose, leaves for `to`; or cannot.
void handover_departs(balance_record& record, int to, bool leaves);
void handover_arrives(balance_record& record, int from);

}  // namespace sojourn::detail
