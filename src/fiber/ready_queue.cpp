// SPDX-License-Identifier: Apache-2.0
#include "fiber/ready_queue.hpp"

#include <utility>

#include "base/check.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

piece* first_ready = nullptr;
ready_queue_state ready_queue;
piece* first_shut_out = nullptr;
task_queue shut_out_tasks;

namespace {

piece* last_shut_out = nullptr;
struct {
  piece* first = nullptr;
  piece* last = nullptr;
} standing;

}  // namespace

void make_ready(piece* p, resumed word) {
  make_ready_next_round(p, word);
  ready_queue.round_last = p;
}

void make_ready_first(piece* p, resumed word) {
  p->word = word;
  p->next_ready = first_ready;
  if (first_ready == nullptr) ready_queue.last = p;
  if (ready_queue.round_last == nullptr) ready_queue.round_last = p;
  first_ready = p;
}

void shut_out(piece* p) {
  p->since = ticks();  // a wait of its own, with nothing to do with the one that has ended
  p->next_ready = nullptr;
  (first_shut_out == nullptr ? first_shut_out : last_shut_out->next_ready) = p;
  last_shut_out = p;
}

void shut_out(task* t) {
  t->next = nullptr;
  (shut_out_tasks.first == nullptr ? shut_out_tasks.first : shut_out_tasks.last->next) = t;
  shut_out_tasks.last = t;
}

void slot_was_read(std::uint32_t slot) {
  SOJOURN_CHECK(slots[slot].being_read != 0, "a slot was read that nobody reads");
  if (--slots[slot].being_read != 0) return;
  for (piece* p = std::exchange(first_shut_out, nullptr); p != nullptr;) {
    piece* next = p->next_ready;
    if (must_not_be_placed(p)) {
      shut_out(p);
    } else {
      make_ready(p, p->word);
    }
    p = next;
  }
  for (task* t = std::exchange(shut_out_tasks, {}).first; t != nullptr;) {
    task* next = t->next;
    if (must_not_be_placed(t->refers->refers_to)) {
      shut_out(t);
    } else {
      post_task(t);
    }
    t = next;
  }
}

void freeze(bool (*stands)(const piece* p)) { ready_queue.stands = stands; }

void thaw() {
  ready_queue.stands = nullptr;
  for (piece* p = std::exchange(standing.first, nullptr); p != nullptr;) {
    piece* next = p->next_ready;
    make_ready(p, p->word);
    p = next;
  }
}

piece* first_standing() { return standing.first; }

void set_aside(piece* p) {
  p->next_ready = nullptr;
  (standing.first == nullptr ? standing.first : standing.last->next_ready) = p;
  standing.last = p;
}

}  // namespace sojourn::detail
