// SPDX-License-Identifier: Apache-2.0
#include "migrate/ship.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "fiber/block.hpp"
#include "fiber/cut.hpp"
#include "fiber/fork_links.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/stack_copy.hpp"
#include "fiber/ticket_waits.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "message/programs.hpp"
#include "migrate/gate.hpp"
#include "migrate/hooks.hpp"
#include "migrate/piece_message.hpp"
#include "migrate/reading.hpp"
#include "migrate/scan/checked_scan.hpp"
#include "migrate/scan/scan.hpp"
#include "migrate/thread_trailer.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/via.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

namespace {

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

std::size_t payload_bytes(const piece* p) {
  return sizeof(piece_header) + p->bytes() + tail_bytes(p);
}

/// Puts the whole piece in a message.
void send_piece(std::byte* room, const departure& d) {
  piece* p = d.leaving;
  std::size_t bytes = payload_bytes(p);
  piece_header header = header_of(p);
  std::memcpy(room, &header, sizeof header);
  copy_out(p, room + sizeof header);
  std::uint16_t flags = write_tail(d, room + sizeof header + p->bytes());
  commit_message(d.to, message_class::request, runtime_message::piece, flags, p->result);
  count_message(runtime_message::piece, bytes);
  counts.migration_copies += p->bytes();
}

void depart_late(void* context) {
  auto* d = static_cast<departure*>(context);
  std::size_t bytes = payload_bytes(d->leaving);
  std::byte* room = reserve_in_turn(d->to, bytes);
  if (room == nullptr) return when_room(d->to, bytes, depart_late, d, d->leaving);
  send_piece(room, *d);
  retire(d->leaving);
  delete d;
}

/// Sends a piece, which is in place, and drops its descriptor. `end`: the mark at which the piece
/// ended, if that mark is on this rank. The scan can only warn, so the message leaves before the
/// scan. Returns true when the bytes have left.
bool depart(piece* p, const mark* end, int to, bool is_scanned = true) {
  if (shares_memory()) [[unlikely]]
    on_migrate.frames_leave();
  departure d{p, to, {}};
  if (p->scope != nullptr) d.scope = on_dispatch.scopes.take(p->scope);
  const bool is_short = p->bytes() < read_from_bytes;
  if (!is_short) [[unlikely]]
    check_is_on_its_stack(p);
  bool goes_now = is_short && (p->thread == 0 || !has_heap(p));
  std::byte* room = goes_now ? try_reserve_request(to, payload_bytes(p)) : nullptr;
  if (room != nullptr) [[likely]]
    send_piece(room, d);
  // Begins at `in_place_from`, because the context of a fork's handler lies in the image alone.
  if (is_scanned) scan_frames(p->in_place_from, p->hi, slots.high(p->slot), end);
  if (room != nullptr) [[likely]] {
    retire(p);
    return true;
  }
  if (!goes_now) {
    let_read(d);
  } else {
    when_room(to, payload_bytes(p), depart_late, new departure(d), p);
  }
  return false;
}

/// The older end of the frames that are to move: a mark, or no mark when the whole piece moves.
struct chosen_end {
  bool found;
  boundary oldest;
};

bool may_end_at(const piece* p, const boundary& b) {
  return b ? may_travel(b.kind) : !p->pinned && !p->by_reference;
}

/// True when the program has opened what would move as an activation, and so said that it may.
bool is_activation(const piece* p, const boundary& end) {
  if (end) return end.kind == mark_kind::activation;
  return p->base != nullptr && address_of(p->base) != p->hi && p->thread == 0;
}

chosen_end choose(const piece* p, via how) {
  if (how.how() == via::mechanism::automatic) {
    const boundaries at(p);
    return {may_end_at(p, *at) && is_activation(p, *at), *at};
  }
  if (how.count() != via::all_of_them) {
    boundaries at(p);
    for (unsigned i = 1; at && i < how.count(); ++i) ++at;
    return {may_end_at(p, *at), *at};
  }
  const std::uint64_t through = how.through_address();
  if (through != 0 && through != address_of(p->base)) {
    for (boundaries at(p); at; ++at) {
      if (at->at == through) return {may_end_at(p, *at), *at};
    }
  }
  // Everything that may move is wanted: the whole piece, or all frames up to the oldest mark at
  // which it may be cut.
  if (may_end_at(p, {}) && reason_to_stay(p, {}) == nullptr) return {true, {}};
  static std::vector<boundary> ends;
  ends.clear();
  for (boundaries at(p); at; ++at) ends.push_back(*at);
  // A reason that keeps some frames here also keeps every longer part of the stack that contains
  // them.
  const auto first_that_stays =
      std::partition_point(ends.begin(), ends.end(),
                           [p](const boundary& end) { return reason_to_stay(p, end) == nullptr; });
  for (auto end = first_that_stays; end != ends.begin();) {
    if (may_end_at(p, *--end)) return {true, *end};
  }
  return {false, {}};
}

/// Frames that move because the runtime has chosen so are not scanned before many have: the scan's
/// first suspicion takes milliseconds, which a short run never wins back, and nobody has written
/// there that this call moves.
bool is_to_be_scanned(via how) {
  constexpr std::uint64_t many = 1 << 16;
  static std::uint64_t chosen = 0;
  return how.how() != via::mechanism::automatic || ++chosen > many;
}

/// Runs on the stack of the frames that move, below them, so that the message leaves before the
/// stack is left.
long move_pieces(std::uint64_t rank, std::uint64_t how, std::uint64_t sp) {
  int to = static_cast<int>(rank);
  piece* left = suspend_running(sp);
  const auto [found, end] = choose(left, std::bit_cast<via>(how));
  if (!found || reason_to_stay(left, end) != nullptr ||
      (left->scope != nullptr && on_dispatch.scopes.available(left->scope) == 0)) {
    ++counts.migrations_refused;
    if (checked()) [[unlikely]]
      name_refusal(left, to);
    make_ready_first(left, resumed::stayed);
    abandon_stack();
  }
  const bool caller_waits = end && !is_fork(end.kind);
  if (checked()) [[unlikely]]
    check_departure(left, end ? end.end : left->hi, caller_waits, end.open, to);
  if (!end) {
    if (left->is_thread_base()) [[unlikely]]
      on_migrate.base.moves_itself(left, to);
    depart(left, nullptr, to, is_to_be_scanned(std::bit_cast<via>(how)));
    abandon_stack();
  }
  piece* younger = cut(left, end);
  const ticket_id result = younger->result;
  depart(younger, end.open, to, is_to_be_scanned(std::bit_cast<via>(how)));
  if (caller_waits) {
    begin_wait(left, find_ticket(result));
  } else {
    make_ready_first(left, resumed::anywhere);
  }
  abandon_stack();
}

void on_piece(arrival& a, const piece_header& header) {
  message_reader frames(a, sizeof header);
  piece* p = new_piece();
  if (a.flags & (flag_thread | flag_scope)) [[unlikely]] {
    read_tail(p, a, frames);
    if (p->extra != nullptr && p->extra->heap != nullptr)
      refuse_arrival(a, "brings a thread without its heap");
  }
  const std::size_t bytes = frames.left();
  describe_arrival(p, a, header, bytes);
  copy_frames(room_for_arrival(p), frames.next(), bytes);
  counts.migration_copies += bytes;
  int source = a.source;
  wire().consume(a);
  filled(p, source);
}

}  // namespace

bool send_whole(piece* p, int to) {
  if (checked()) [[unlikely]]
    check_departure(p, p->hi, false, nullptr, to);
  return depart(p, nullptr, to);
}

void attach_ship() { on_message<piece_header, on_piece>(runtime_message::piece); }

resumed move_activations(int to, via how) {
  if (to < 0 || to >= job.count) {
    throw error(
        format("there is no rank %d to migrate to: this job has ranks 0 to %d", to, job.count - 1));
  }
  if (to == job.me) return resumed::there;
  if (takes_no_stacks(to)) [[unlikely]] {
    ++counts.migrations_refused;
    return resumed::stayed;
  }
  if (running_piece() == nullptr) [[unlikely]]
    waits_outside_fiber();
  // Earlier calls may have used up this rank's weight of the finish scope.
  if (running_piece()->scope != nullptr) [[unlikely]] {
    on_dispatch.scopes.gather();
    if (to == job.me) return resumed::there;
  }
  wire().prepare(to, message_class::request);
  return resumed{capture_stack(move_pieces, static_cast<std::uint64_t>(to),
                               std::bit_cast<std::uint64_t>(how))};
}

}  // namespace sojourn::detail
