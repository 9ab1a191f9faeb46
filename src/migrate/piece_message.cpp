// SPDX-License-Identifier: Apache-2.0
#include "migrate/piece_message.hpp"

#include <cstring>

#include "fiber/fork_links.hpp"
#include "fiber/ready_queue.hpp"
#include "memory/stack_slots.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "migrate/hooks.hpp"
#include "migrate/thread_trailer.hpp"

namespace sojourn::detail {

constinit migrate_hooks on_migrate;

namespace {

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

}  // namespace

piece_header header_of(const piece* p) {
  return {p->sp, p->base, p->youngest, p->fp, p->returns, p->has_forks, p->called_from};
}

std::size_t tail_bytes(const piece* p) {
  std::size_t bytes = 0;
  if (p->thread != 0) [[unlikely]]
    bytes += trailer_bytes(p);
  if (p->scope != nullptr) [[unlikely]]
    bytes += sizeof(scope_ticket);
  return bytes;
}

std::uint16_t write_tail(const departure& d, std::byte* room) {
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

void read_tail(piece* p, const arrival& a, message_reader& from) {
  if (a.flags & flag_scope) p->scope = on_dispatch.scopes.give(a, from.take_last<scope_ticket>());
  if (a.flags & flag_thread) read_trailer(p, a, from);
}

void describe_arrival(piece* p, const arrival& a, const piece_header& header, std::size_t bytes) {
  if (!addresses.in_stacks(header.sp)) refuse_arrival(a, "begins outside of all stacks");
  std::uint32_t slot = slots.index_of(header.sp);
  if (bytes > slots.high(slot) - header.sp) refuse_arrival(a, "is longer than its stack");
  if (header.sp - slots.low(slot) < stack_slots::guard_bytes)
    refuse_arrival(a, "begins in the guard page of its stack");
  if (header.youngest != nullptr && address_of(header.youngest) - header.sp >= bytes)
    refuse_arrival(a, "names a mark that is not in it");
  p->slot = slot;
  p->sp = header.sp;
  p->hi = header.sp + bytes;
  p->base = header.base;
  p->result = checked_ticket(a, a.ticket);
  p->youngest = header.youngest;
  p->links = links_of_arrival();
  p->fp = header.fp;
  if (header.returns.bytes > sizeof(std::uint64_t))
    refuse_arrival(a, "returns more than a register holds");
  p->returns = header.returns;
  p->has_forks = header.has_forks;
  p->called_from = header.called_from;
}

std::byte* room_for_arrival(piece* p) {
  if (!checked()) [[likely]]
    return room_for(p);
  stack_slot& slot = slots[p->slot];
  // Frames that end at one place mostly come again and again. The slot then stays closed above
  // them, instead of being opened and closed each time.
  bool closed = slot.closed_from_page != 0 && slots.is_closed_above(p->slot, p->hi);
  if (closed) slot.open = true;
  std::byte* room = room_for(p);
  if (closed) slot.open = false;
  return room;
}

void filled(piece* p, int source, bool announced) {
  stack_slot& slot = slots[p->slot];
  // Checked mode: the callers' part of the stack is inaccessible, so that a frame which refers to
  // it ends the job and is named.
  if (checked() && slot.open && slot.in_place == p && p->next_in_slot == nullptr) [[unlikely]] {
    slots.close_above(p->slot, p->hi);
  }
  make_ready(p, resumed::there);
  if (p->is_thread_base()) [[unlikely]]
    on_migrate.base.arrives(p, source, announced);
}

}  // namespace sojourn::detail
