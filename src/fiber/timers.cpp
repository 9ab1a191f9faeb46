// SPDX-License-Identifier: Apache-2.0
#include "fiber/timers.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "fiber/piece.hpp"
#include "memory/address_map.hpp"

namespace sojourn::detail {

std::uint64_t next_timer_ns = never_ns;

namespace {

struct timer {
  std::uint64_t deadline_ns;
  std::uint64_t number;  // in the order in which they were set
  piece* who;

  bool operator<(const timer& other) const {
    return std::pair(deadline_ns, number) < std::pair(other.deadline_ns, other.number);
  }
};

// A binary heap in [1, count]; piece::timer is the place in it, 0 for none.
struct {
  timer* at = nullptr;
  std::uint32_t count = 0;
  std::uint32_t capacity = 0;
  std::uint64_t last_number = 0;
} heap;

struct {
  std::uint64_t at_ns = never_ns;
  void (*ring)() = nullptr;
} alarm;

void note_next() {
  next_timer_ns = alarm.at_ns;
  if (heap.count != 0) next_timer_ns = std::min(next_timer_ns, heap.at[1].deadline_ns);
}

void put(std::uint32_t place, const timer& t) {
  heap.at[place] = t;
  t.who->timer = place;
}

/// Puts `t` at `place`, or nearer to the root if it belongs there.
void sift_up(std::uint32_t place, const timer& t) {
  for (; place > 1 && t < heap.at[place / 2]; place /= 2) put(place, heap.at[place / 2]);
  put(place, t);
}

/// Puts `t` at `place`, or further from the root if it belongs there.
void sift_down(std::uint32_t place, const timer& t) {
  for (;;) {
    std::uint32_t child = 2 * place;
    if (child > heap.count) break;
    if (child < heap.count && heap.at[child + 1] < heap.at[child]) ++child;
    if (!(heap.at[child] < t)) break;
    put(place, heap.at[child]);
    place = child;
  }
  put(place, t);
}

void take_out(std::uint32_t place) {
  heap.at[place].who->timer = 0;
  timer last = heap.at[heap.count--];
  if (place <= heap.count) {
    if (place > 1 && last < heap.at[place / 2]) {
      sift_up(place, last);
    } else {
      sift_down(place, last);
    }
  }
  note_next();
}

/// The old array is not given back: all old arrays together are no larger than the last.
void grow() {
  std::uint32_t capacity = std::max<std::uint32_t>(2 * heap.capacity, 256);
  auto* at = static_cast<timer*>(runtime_memory(capacity * sizeof(timer)));
  std::copy(heap.at, heap.at + heap.capacity, at);
  heap.at = at;
  heap.capacity = capacity;
}

}  // namespace

void set_timer(piece* p, std::uint64_t deadline_ns) {
  SOJOURN_CHECK(p->timer == 0, "a fiber whose timer is set sets another one");
  if (deadline_ns == never_ns) return;
  if (heap.count + 1 >= heap.capacity) grow();
  sift_up(++heap.count, {deadline_ns, ++heap.last_number, p});
  note_next();
}

void set_alarm(std::uint64_t at_ns, void (*ring)()) {
  alarm = {at_ns, ring};
  note_next();
}

bool cancel_timer(piece* p) {
  if (p->timer == 0) return false;
  take_out(p->timer);
  if (p->waits == wait_cause::timer) p->waits = wait_cause::none;
  return true;
}

std::uint64_t timer_of(const piece* p) {
  return p->timer == 0 ? never_ns : heap.at[p->timer].deadline_ns;
}

void ring_if_due(std::uint64_t now) {
  if (alarm.at_ns > now) return;
  alarm.at_ns = never_ns;
  note_next();
  alarm.ring();
}

piece* first_due(std::uint64_t now) {
  return heap.count != 0 && heap.at[1].deadline_ns <= now ? heap.at[1].who : nullptr;
}

void save_timers(file_writer& to) {
  to.put(heap.last_number);
  to.put(heap.count);
  for (std::uint32_t i = 1; i <= heap.count; ++i) to.put(heap.at[i]);
}

void load_timers(file_reader& from) {
  from.get(heap.last_number);
  from.get(heap.count);
  while (heap.count + 1 >= heap.capacity) grow();
  for (std::uint32_t i = 1; i <= heap.count; ++i) from.get(heap.at[i]);
  note_next();
}

std::size_t timers_set() { return heap.count; }

}  // namespace sojourn::detail
