// SPDX-License-Identifier: Apache-2.0
// What a message with a piece holds, and a piece's arrival.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fiber/fork_links.hpp"
#include "fiber/piece.hpp"
#include "fiber/ready_queue.hpp"
#include "memory/stack_slots.hpp"
#include "message/dispatcher.hpp"
#include "message/message_reader.hpp"
#include "migrate/hooks.hpp"
#include "migrate/thread_trailer.hpp"

namespace sojourn::detail {

/// From this size on, the receiver reads a piece straight from the suspended stack: one copy, by
/// a system call, instead of two.
inline constexpr std::size_t read_from_bytes = 32u << 10;

/// What a message with a piece holds before the bytes themselves. The message's ticket is the
/// piece's result.
struct piece_header {
  std::uint64_t sp;
  const void* base;
  mark* youngest;
  fp_control fp;
  child_result returns;
  bool has_forks;
  std::uint64_t called_from;
};

/// A piece on its way out.
struct departure {
  piece* leaving;
  int to;
  scope_ticket scope;  ///< Weight that goes along, when the piece counts in a finish scope.
};

inline piece_header header_of(const piece* p) {
  return {p->sp, p->base, p->youngest, p->fp, p->returns, p->has_forks, p->called_from};
}

/// Bytes of the tail: what follows the frames in a message when the piece belongs to a thread or a
/// finish scope.
inline std::size_t tail_bytes(const piece* p) {
  std::size_t bytes = 0;
  if (p->thread != 0) [[unlikely]]
    bytes += trailer_bytes(p);
  if (p->scope != nullptr) [[unlikely]]
    bytes += sizeof(scope_ticket);
  return bytes;
}
/// Writes the tail; returns the message's flags.
inline std::uint16_t write_tail(const departure& d, std::byte* room) {
  piece* p = d.leaving;
  std::uint16_t flags = 0;
  if (p->thread != 0) [[unlikely]] {
    write_trailer(p, room);
    room += trailer_bytes(p);
    flags = flag_thread;
  }
  if (p->scope != nullptr) [[unlikely]] {
    std::memcpy(room, &d.scope, sizeof d.scope);
    flags |= flag_scope;
  }
  return flags;
}
/// Takes the tail from the end of a message.
void read_tail(piece* p, const arrival& a, message_reader& from);

/// Fills in the descriptor of a piece that has arrived, except for its bytes and what the tail
/// says. Ends the rank if a piece of so many bytes does not fit in a stack at that address.
inline void describe_arrival(piece* p, const arrival& a, const piece_header& header,
                             std::size_t bytes) {
  if (!addresses.in_stacks(header.sp)) [[unlikely]]
    refuse_arrival(a, "begins outside of all stacks");
  std::uint32_t slot = slots.index_of(header.sp);
  if (bytes > slots.high(slot) - header.sp) [[unlikely]]
    refuse_arrival(a, "is longer than its stack");
  if (header.sp - slots.low(slot) < stack_slots::guard_bytes) [[unlikely]]
    refuse_arrival(a, "begins in the guard page of its stack");
  if (header.youngest != nullptr &&
      reinterpret_cast<std::uint64_t>(header.youngest) - header.sp >= bytes) [[unlikely]]
    refuse_arrival(a, "names a mark that is not in it");
  if (header.returns.bytes > sizeof(std::uint64_t)) [[unlikely]]
    refuse_arrival(a, "returns more than a register holds");
  p->slot = slot;
  p->sp = header.sp;
  p->hi = header.sp + bytes;
  p->base = header.base;
  p->result = checked_ticket(a, a.ticket);
  p->youngest = header.youngest;
  p->links = links_of_arrival();
  p->fp = header.fp;
  p->returns = header.returns;
  p->has_forks = header.has_forks;
  p->called_from = header.called_from;
}

/// The same as room_for, for checked mode. Frames that end at one address mostly arrive there again
/// and again, so the slot stays closed above them, instead of being opened and closed each time.
std::byte* room_below_closed_pages(piece* p);
/// Where the bytes of `p` are to be copied. Call filled() once they are.
inline std::byte* room_for_arrival(piece* p) {
  if (checked()) [[unlikely]]
    return room_below_closed_pages(p);
  return room_for(p);
}

/// Checked mode: makes the callers' part of the stack inaccessible, so that a frame which refers
/// to it ends the job and is named.
void close_above(const piece* p);
/// The piece is complete, and will run when its turn comes. `announced`: on_migrate.base.announced
/// was called for it.
inline void filled(piece* p, int source, bool announced = false) {
  if (checked()) [[unlikely]]
    close_above(p);
  make_ready(p, resumed::there);
  if (p->is_thread_base()) [[unlikely]]
    on_migrate.base.arrives(p, source, announced);
}

}  // namespace sojourn::detail
