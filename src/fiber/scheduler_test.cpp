// SPDX-License-Identifier: Apache-2.0
#include "fiber/scheduler.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "memory/region_test.hpp"
#include "memory/stack_slots.hpp"

namespace {

using namespace sojourn::detail;

piece* no_watch() { return nullptr; }

piece* ready_in(std::uint32_t slot) {
  piece* p = new_piece();
  p->slot = slot;
  make_ready(p, resumed::anywhere);
  return p;
}

std::vector<piece*> listed(piece* first) {
  std::vector<piece*> all;
  for (piece* p = first; p != nullptr; p = p->next_ready) all.push_back(p);
  return all;
}

/// A fiber that is shut out must not count as ready. Otherwise its rank would stay busy, and keep a
/// reader on the same core from reading.
void shut_out_until_their_slots_were_read() {
  map_as(0, 4 * gib, 1);
  slots.attach(0, no_watch);
  const std::uint32_t slot = slots.acquire(), other_slot = slots.acquire();
  slots[slot].being_read = 2;
  slots[other_slot].being_read = 1;
  piece* first = ready_in(slot);
  piece* other = ready_in(other_slot);
  piece* second = ready_in(slot);
  CLAIM(run_ready(10) == 3);
  CLAIM(!anything_ready());
  CLAIM((listed(first_shut_out) == std::vector{first, other, second}));
  CLAIM(run_ready(10) == 0);

  slot_was_read(slot);
  CLAIM(!anything_ready());
  slot_was_read(slot);
  CLAIM((listed(first_ready) == std::vector{first, second}));
  CLAIM(first->word == resumed::anywhere && second->word == resumed::anywhere);
  CLAIM(listed(first_shut_out) == std::vector{other});
  // Those that are shut out later come behind `other`.
  slots[slot].being_read = 1;
  CLAIM(run_ready(10) == 2);
  CLAIM((listed(first_shut_out) == std::vector{other, first, second}));
  slot_was_read(other_slot);
  slot_was_read(slot);
  CLAIM((listed(first_ready) == std::vector{other, first, second}));
  CLAIM(first_shut_out == nullptr);
}

/// A child on a stack of its own brings its caller's frames in place, which lie in another slot.
void children_shut_out_until_their_callers_slots_were_read() {
  map_as(0, 4 * gib, 1);
  slots.attach(0, no_watch);
  const std::uint32_t slot = slots.acquire(), callers_slot = slots.acquire();
  piece* caller = new_piece();
  caller->slot = callers_slot;
  piece* child = ready_in(slot);
  add_referrer(caller, child);
  task t{[](task*) {}, nullptr};
  referrer tie{};
  t.refers = &tie;
  add_referrer(caller, &tie);
  post_task(&t);

  slots[callers_slot].being_read = 1;
  run_what_is_here(10);
  CLAIM(!anything_ready() && posted.first == nullptr);
  CLAIM(listed(first_shut_out) == std::vector{child});
  CLAIM(shut_out_tasks.first == &t && shut_out_tasks.last == &t);

  // If a rank reads the child's own slot, or another one, that does not keep the task from running.
  slots[slot].being_read = 1;
  slot_was_read(callers_slot);
  CLAIM(posted.first == &t && shut_out_tasks.first == nullptr);
  CLAIM(!anything_ready() && listed(first_shut_out) == std::vector{child});
  slot_was_read(slot);
  CLAIM(listed(first_ready) == std::vector{child} && first_shut_out == nullptr);
}

TEST(scheduler, children_are_not_ready_while_other_ranks_read_the_slots_of_their_callers) {
  EXPECT_CLAIMS(children_shut_out_until_their_callers_slots_were_read);
}

TEST(scheduler, fibers_are_not_ready_while_other_ranks_read_their_slots) {
  EXPECT_CLAIMS(shut_out_until_their_slots_were_read);
}

}  // namespace
