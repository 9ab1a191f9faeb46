// SPDX-License-Identifier: Apache-2.0
// The home of a thread: the rank of the ticket of its result. The ticket says where the base is, as
// far as home knows (thread_location.hpp), and takes the outcome. Here are the messages that keep
// home informed, and those by which other ranks ask it something.
#pragma once

#include <cstdint>

#include "migrate/thread/thread_location.hpp"
#include "migrate/thread_table.hpp"

namespace sojourn::detail {

class file_writer;
class file_reader;

void attach_thread_home();

/// What this rank knows of a thread whose home it is.
known_thread known_here(ticket_id thread);

/// A base leaves this rank for `to`, or comes from `from`. `moves`: how often it has moved, this
/// move included. Also called for a thread that has not started.
void thread_departs(ticket_id thread, std::uint32_t moves, int to);
void thread_arrives(ticket_id thread, std::uint32_t moves, int from);
/// To be called when the base `p`, a fiber of this rank, is about to leave for `to`.
inline void base_departs(piece* p, int to) {
  threads_here.erase(p);
  thread_departs(p->thread, ++p->moves, to);
}

/// Asks the thread's home whether its base is on its way to this rank. If it is not, home answers
/// with the message thread_stale.
void question_home(ticket_id thread);

/// What a program asks the home of a thread. Sent as a message, not as a call of a function,
/// because a rank of another program may ask.
enum class home_question : std::uint64_t { join, detach, finished, where };
/// Suspends, unless the home is here and the answer at hand. Throws thread_error, sojourn::error.
std::int64_t ask_its_home(ticket_id thread, home_question question);

/// Write what this rank has counted to a checkpoint, and read it back in a job that is restored.
void save_homecomings(file_writer& to);
void load_homecomings(file_reader& from);

}  // namespace sojourn::detail
