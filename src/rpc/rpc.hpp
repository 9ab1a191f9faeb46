// SPDX-License-Identifier: Apache-2.0
// Remote calls: results and exceptions on their way home, functions by index, collectives, finish
// scopes, bulk transfers. This header is what the job floor needs of them; the rest is public.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "sojourn/detail/collective_plan.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct ticket;
class file_writer;
class file_reader;

/// Register the handlers of this floor. Before any message arrives.
void attach_rpc();
void attach_collectives();
void attach_scopes();
void attach_bulk();
void attach_kept();
void attach_stop();
/// Makes the table of what the program exports. Throws sojourn::error.
void attach_names();
const char* name_of(collective operation);
/// Makes the next collective operation of all ranks the one that agrees on the end of the program.
void collectives_end_program();
/// Suspends until this rank has done its part in all collective operations that it has begun. False
/// when there was none to wait for.
bool wait_for_open_collectives();
/// True when this rank has begun operations that have not ended.
bool collectives_are_open();

/// What the fiber that waits for `ticket` waits for in a collective operation; `none`: it waits for
/// something else. Reads only what can be read at any moment.
struct collective_wait {
  collective operation;
  int missing;  ///< The rank whose contribution, or answer, is not here.
};
collective_wait collective_waiting(ticket_id ticket);
/// True when `ticket` is that of an open finish whose home is this rank.
bool is_finish(ticket_id ticket);
/// The ticket of the finish scope that a piece refers to; 0 for none.
ticket_id finish_of(const void* scope);
/// The ticket, on another rank, that waits for the result of `t`; 0 when none does.
ticket_id forwarded_to(const ticket& t);
/// An exception as any other rank would get it.
std::vector<std::byte> encoded(const std::exception_ptr& exception);
/// Sends the result of `id`, once there is one, to `to`, a ticket of another rank.
void forward_result(ticket_id id, ticket_id to);
/// What a checkpoint would lose of this rank's dist_objects; null: nothing. Those outside of what
/// is saved are made again.
const char* unsaved_dist_object(bool (*is_saved)(const void* object));
/// True when this rank keeps values that nobody has read.
bool values_are_kept();
/// True when a finish scope has computations or a part of its weight on this rank.
bool finish_is_open();
/// Save and restore what this rank knows of stop sources.
void save_stops(file_writer& to);
void load_stops(file_reader& from);
/// Called once, at the end of this rank's next barrier, unless it is null.
extern void (*after_next_barrier)();

/// A rank has ended: what waits for it here fails with rank_lost. That is, in this order: answers
/// and threads; finishes that have sent something anywhere; collective operations.
void fail_answers_of(int rank);
void fail_finishes(int rank);
void fail_collective();

/// When the result of `id` comes, it is written to `into`, and its bytes may be so one by one: the
/// place stays until wait_landed() or settle_landing() has returned. Requires: the result is not
/// here yet; the place lies in memory of this rank that does not travel.
void land_in_place(ticket_id id, void* into, std::size_t bytes);
/// Suspends until it has come. Throws what came instead of it; the ticket is free in either case.
void wait_landed(ticket_id id, std::size_t bytes);
/// The same, whatever comes.
void settle_landing(ticket_id id);

/// From now on nobody waits for an answer: continuations among the program's variables are
/// destroyed at its exit, which is not an error.
void end_continuations();

/// Finds the program's table of functions. Throws sojourn::error when it was linked without one.
void attach_functions();

}  // namespace sojourn::detail
