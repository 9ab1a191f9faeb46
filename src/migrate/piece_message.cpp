// SPDX-License-Identifier: Apache-2.0
#include "migrate/piece_message.hpp"

namespace sojourn::detail {

constinit migrate_hooks on_migrate;

void read_tail(piece* p, const arrival& a, message_reader& from) {
  if (a.flags & flag_scope) p->scope = on_dispatch.scopes.give(a, from.take_last<scope_ticket>());
  if (a.flags & flag_thread) read_trailer(p, a, from);
}

std::byte* room_below_closed_pages(piece* p) {
  stack_slot& slot = slots[p->slot];
  bool closed = slot.closed_from_page != 0 && slots.is_closed_above(p->slot, p->hi);
  if (closed) slot.open = true;
  std::byte* room = room_for(p);
  if (closed) slot.open = false;
  return room;
}

void close_above(const piece* p) {
  const stack_slot& slot = slots[p->slot];
  if (slot.open && slot.in_place == p && p->next_in_slot == nullptr)
    slots.close_above(p->slot, p->hi);
}

}  // namespace sojourn::detail
