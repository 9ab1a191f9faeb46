// SPDX-License-Identifier: Apache-2.0
#include "fiber/spare_stacks.hpp"

#include <vector>

#include "fiber/hooks.hpp"
#include "sojourn/counters.hpp"

namespace sojourn::detail {

spare_stacks_state spare_stacks;

piece* make_spare() {
  piece* p = new_piece();
  p->slot = slots.acquire();
  p->hi = slots.high(p->slot);
  p->keeps_slot = true;
  return p;
}

piece* another_spare() {
  std::vector<piece*> refused;
  piece* p = spare_stacks.spare;
  while (slots[p->slot].being_read != 0) {
    refused.push_back(p);  // released only below: make_spare would take the same slot again
    p = make_spare();
  }
  for (piece* r : refused) {
    slots.release(r->slot);
    free_piece(r);
  }
  return spare_stacks.spare = p;
}

void become_fiber(piece* p, const call_origin& origin) {
  spare_stacks.spare = nullptr;
  p->called_by = origin.rank;
  // The fiber that a blocked handler becomes is known by the ticket of its answer.
  if (origin.rank != no_rank) p->result = origin.answer;
  ++spare_stacks.fibers_resident;
  ++counts.fibers_made;
  on_fiber.made(p);
  if (spare_stacks.fibers_resident > slots.fibers_max() || p->shares_stack) {
    // There are few stacks left, so the next handler shares this fiber's stack; the fiber's frames
    // then become an image.
    piece* sharer = new_piece();
    sharer->slot = p->slot;
    sharer->hi = p->hi;
    sharer->keeps_slot = true;
    ++slots[p->slot].users;
    spare_stacks.spare = sharer;
  }
}

bool running_keeps_its_stack() {
  const auto* p = static_cast<const piece*>(running_fiber);
  if (p == nullptr || p->hi != slots.high(p->slot)) return false;
  if (slots.is_main(p->slot)) return true;
  // The spare becomes a fiber when it blocks. If that were one fiber too many, it would have to
  // share its stack.
  return p->keeps_slot && !p->shares_stack && slots[p->slot].users == 1 &&
         (p != spare_stacks.spare || spare_stacks.fibers_resident < slots.fibers_max());
}

}  // namespace sojourn::detail
