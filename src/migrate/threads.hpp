// SPDX-License-Identifier: Apache-2.0
// How the job finds its threads. A thread is named by the ticket of its result, and the rank of
// that ticket is the thread's *home*. The ticket says, as far as home knows, where the thread's
// *base* (its oldest frames) is and how often it has moved. A rank that is to move a thread which
// it does not have asks home, and home passes the request on to the rank where it believes the base
// to be. If that rank does not have the base either, the base may be on its way: the rank keeps the
// request and asks home whether that is so. What it told home earlier about a base's leaving or end
// arrives before this question, so home knows.
#pragma once

#include <cstdint>

#include "fiber/piece.hpp"
#include "migrate/balance.hpp"
#include "sojourn/thread.hpp"

namespace sojourn::detail {

struct arrival;
class message_reader;
class thread_arena;

/// What only some threads have; travels with the base.
struct thread_extra {
  inline_string<23> name;
  thread_arena* heap = nullptr;  ///< At an address that is unique in the whole job.
  ticket_id asked_to_move = 0;   ///< Gets the answer once the base has left; 0: nobody asked.
  balance_record balance;
  thread_extra* next_free = nullptr;
};

/// Follows the frames of a piece that is part of a thread.
struct thread_trailer {
  ticket_id thread;
  std::uint32_t moves;
  std::uint32_t has_extra;  ///< A thread_extra lies before this.
};

void attach_threads();

thread_extra& extra_of(piece* p);

/// Bytes that a departing piece takes in a message besides its frames, when it is part of a thread.
std::size_t trailer_bytes(const piece* p);
/// Writes these bytes.
void write_trailer(const piece* p, std::byte* room);
/// Takes these bytes from the end of a message.
void read_trailer(piece* p, const arrival& a, message_reader& from);

/// Write what this rank knows of threads that are not here to a checkpoint, and read it back in a
/// job that is restored.
void save_threads(file_writer& to);
void load_threads(file_reader& from);
/// The same for what belongs to the piece `p` of a thread; load_thread also makes the thread known
/// here.
void save_thread(const piece* p, file_writer& to);
void load_thread(piece* p, file_reader& from);

/// `p`, the base of a thread that ran until now, is about to leave for `to`.
void base_moves_itself(piece* p, int to);
/// The base has arrived from `from`. When its bytes come in parts, base_announced() was called with
/// the first message, because bases that come home must be counted in the order in which they left.
void base_arrives(piece* p, int from, bool announced);
void base_announced(const piece* p, int from);

/// The same for any thread, also one that has not started.
void thread_departs(ticket_id thread, std::uint32_t moves, int to);
void thread_arrives(ticket_id thread, std::uint32_t moves, int from);
/// Passes the requests kept for a thread on to where it is now.
void ask_on(ticket_id thread);

}  // namespace sojourn::detail
