// SPDX-License-Identifier: Apache-2.0
#include "observe/wait_report.hpp"

#include <algorithm>

namespace sojourn::detail {

bool waits_for_a_fiber(const fiber_record& fiber) {
  switch (fiber.kind) {
    case wait_kind::call:
    case wait_kind::result:
    case wait_kind::finish:
    case wait_kind::mutex:
    case wait_kind::static_variable:
    case wait_kind::once:
    case wait_kind::shared_mutex:
      return fiber.left_ns == fiber_record::no_limit;
    default:
      return false;
  }
}

void make_sound(rank_report& report, int ranks) {
  report.fiber_count = std::min<std::uint32_t>(report.fiber_count, rank_report::fibers_max);
  report.link_count = std::min<std::uint32_t>(report.link_count, rank_report::links_max);
  report.stack_count = std::min<std::uint32_t>(report.stack_count, rank_report::stack_max);
  report.held_count = std::min<std::uint32_t>(report.held_count, rank_report::held_max);
  for (held_mutex& held : report.held) {
    if (held.fiber >= static_cast<std::int32_t>(report.fiber_count))
      held.fiber = held_mutex::untold;
  }
  for (fiber_record& fiber : report.fibers) {
    fiber.frame_count = static_cast<std::uint8_t>(
        std::min<std::size_t>(fiber.frame_count, fiber_record::frames_max));
    if (fiber.rank >= ranks) fiber.rank = -1;
    if (fiber.holder >= static_cast<std::int32_t>(report.fiber_count)) fiber.holder = -1;
  }
}

bool watch_area::is_asleep(int rank) const {
  // The transport is asked, too: to it, a rank that is about to run is not asleep any more.
  return of(rank).epoch.load() % 2 != 0 && asleep_.is_asleep(rank);
}

bool watch_area::ask(int rank, std::uint32_t request, bool brief) const {
  if (brief) of(rank).brief_wanted.store(request);
  of(rank).report_wanted.store(request);
  // A rank that falls asleep misses no request: it looks for requests after it has become asleep
  // for the transport.
  return asleep_.wake(rank);
}

void watch_area::wake(int rank) const { (void)asleep_.wake(rank); }

std::optional<watch_area::rest> watch_area::at_rest(int first, int count) const {
  // A rank that sleeps in both passes, in the same epoch, has slept in between. It sends nothing
  // meanwhile, and its counts and its time to wake are those from when it fell asleep. So all
  // counts are right for the moment between the passes. Epochs only grow, so if their sum is the
  // same, each is. (They are not listed, because a rank that falls asleep allocates nothing.)
  rest all;
  for (int rank = first; rank < first + count; ++rank) {
    if (!is_asleep(rank)) return std::nullopt;
    all.epochs += of(rank).epoch.load();
    if (of(rank).wakes_at_ns.load() != 0 || of(rank).may_be_woken.load() != 0) return std::nullopt;
    all.sent += of(rank).sent.load();
    all.received += of(rank).received.load();
  }
  std::uint64_t epochs = 0;
  for (int rank = first; rank < first + count; ++rank) {
    if (!is_asleep(rank)) return std::nullopt;
    epochs += of(rank).epoch.load();
  }
  if (epochs != all.epochs) return std::nullopt;
  return all;
}

bool watch_area::nothing_can_happen() const {
  const std::optional<rest> all = at_rest(0, ranks_);
  return all && all->sent == all->received;
}

}  // namespace sojourn::detail
