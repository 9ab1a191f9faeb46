// SPDX-License-Identifier: Apache-2.0
// What belongs to a thread besides its frames, and travels after them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber/piece.hpp"
#include "migrate/balance_record.hpp"
#include "sojourn/calls/inline_string.hpp"

namespace sojourn::detail {

struct arrival;
class message_reader;
class thread_arena;

/// What only some threads have; travels with the base.
struct thread_extra {
  inline_string<23> name;
  thread_arena* heap = nullptr;  ///< At an address that no other heap of the job has.
  ticket_id asked_to_move = 0;   ///< Gets the answer once the base has left; 0: nobody asked.
  balance_record balance;
  thread_extra* next_free = nullptr;
};

/// The thread_extra of `p`, a part of a thread. Made if there is none yet.
thread_extra& extra_of(piece* p);
/// Frees the thread_extra of `p`.
void free_extra(piece* p);

/// Follows the frames of a piece that is part of a thread.
struct thread_trailer {
  ticket_id thread;
  std::uint32_t moves;
  std::uint32_t has_extra;  ///< A thread_extra lies before this.
};

/// Bytes that a departing piece takes in a message besides its frames, when it is part of a thread.
std::size_t trailer_bytes(const piece* p);
/// Writes these bytes.
void write_trailer(const piece* p, std::byte* room);
/// Takes these bytes from the end of a message.
void read_trailer(piece* p, const arrival& a, message_reader& from);

/// Write to a checkpoint what belongs to the piece `p` of a thread, its heap included, and read it
/// back in a job that is restored; load_thread also makes the thread known here.
void save_thread(const piece* p, file_writer& to);
void load_thread(piece* p, file_reader& from);

}  // namespace sojourn::detail
