// SPDX-License-Identifier: Apache-2.0
// Threads as the job finds them. A thread is known by the ticket of its result, so its home is that
// ticket's; the ticket says where its base is, as far as home knows, and how often it has moved.
// Asked to move a thread, a rank that does not have it asks home; home sends on to where it
// believes the base to be. A rank that is asked and does not have it either keeps the question, for
// the base may be on its way, and asks home whether that is so: what a rank has told home on a
// base's leaving or end arrives before that question, so home knows.
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
  thread_arena* heap = nullptr;  ///< At an address of its own in the whole job.
  ticket_id asked_to_move = 0;   ///< Who has asked learns it when the base has left; 0: nobody.
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
/// Writes them.
void write_trailer(const piece* p, std::byte* room);
/// Takes them from the end of a message.
void read_trailer(piece* p, const arrival& a, message_reader& from);

/// What this rank knows of threads, but for those that are here; and so in a run that goes on from
/// there.
void save_threads(file_writer& to);
void load_threads(file_reader& from);
/// What goes with a piece of it: load_thread has the thread known here.
void save_thread(const piece* p, file_writer& to);
void load_thread(piece* p, file_reader& from);

/// A thread's base, which ran, is about to leave for `to`.
void base_moves_itself(piece* p, int to);
/// It has arrived, from `from`. When its bytes come in parts, it was announced before: bases that
/// come home are counted in the order in which they left.
void base_arrives(piece* p, int from, bool announced);
void base_announced(const piece* p, int from);

/// The same of a thread that has not started.
void thread_departs(ticket_id thread, std::uint32_t moves, int to);
void thread_arrives(ticket_id thread, std::uint32_t moves, int from);
/// What was asked of a thread that was here is asked where it is now.
void ask_on(ticket_id thread);

}  // namespace sojourn::detail
