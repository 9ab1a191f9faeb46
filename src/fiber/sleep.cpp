// SPDX-License-Identifier: Apache-2.0
#include "fiber/sleep.hpp"

#include "fiber/block.hpp"
#include "fiber/ready_queue.hpp"
#include "fiber/ticket_waits.hpp"
#include "fiber/timers.hpp"
#include "fiber/wait_clock.hpp"
#include "fiber/waiters.hpp"
#include "memory/address_map.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

namespace {

bool lies_in_frames(const waiters* object) {
  return addresses.in_stacks(reinterpret_cast<std::uint64_t>(object));
}
// How soon to try again to wake a piece that cannot be placed, because other ranks read its slot.
constexpr std::uint64_t look_again_ns = 100'000;

}  // namespace

int wake_due(std::uint64_t now) {
  int woken = 0;
  ring_if_due(now);
  while (piece* const p = first_due(now)) {
    if (p->waits_on != nullptr && lies_in_frames(p->waits_on)) [[unlikely]] {
      // The queue in which the piece waits may lie in the piece's own frames, which may have become
      // an image meanwhile.
      if (must_not_be_placed(p)) {
        cancel_timer(p);
        set_timer(p, now + look_again_ns);
        continue;
      }
      place(p);
    }
    cancel_timer(p);
    if (p->waits == wait_cause::ticket) stop_waiting(p);
    p->waits = wait_cause::none;
    if (p->waits_on != nullptr) drop_waiter(p);
    make_ready(p, resumed::by_timer);
    ++woken;
  }
  return woken;
}

void sleep_until_ns(std::uint64_t deadline_ns) {
  if (now_ns() >= deadline_ns) {
    give_turn();
    return;
  }
  do {
    // A fiber that was woken early may be on another rank by now. That rank's clock is the same.
    leave_to_wait(
        [](piece* left, void* context) {
          std::uint64_t deadline = *static_cast<std::uint64_t*>(context);
          piece* sleeper = block(left);
          wait_times.begins(sleeper);
          sleeper->waits = wait_cause::timer;
          set_timer(sleeper, deadline);
        },
        &deadline_ns);
  } while (now_ns() < deadline_ns);
}

}  // namespace sojourn::detail
