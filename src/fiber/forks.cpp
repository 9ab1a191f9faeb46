// SPDX-License-Identifier: Apache-2.0
#include "fiber/forks.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

#include "base/check.hpp"
#include "fiber/block.hpp"
#include "fiber/fork_links.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/fork.hpp"

namespace sojourn::detail {

child_way attend_fork(mark_kind kind) {
  if (children_run_in_place()) {
    return on_fiber.fork.forks(kind) ? child_way::elsewhere : child_way::in_place;
  }
  // A child that refers to its caller's frames needs them in place while it runs, so the caller
  // must keep its stack.
  if (is_by_reference(kind) && !running_keeps_its_stack()) return child_way::in_place;
  ++counts.forks_on_heap;
  return child_way::on_heap;
}

[[gnu::noinline]] void clear_room_for_child() {
  std::array<std::uint64_t, 128> room;  // more than the frames of what was called before have taken
  room.fill(0);
  asm volatile("" : : "r"(room.data()) : "memory");
}

std::uint64_t leave_as_child() { return on_fiber.fork.leaves(); }
void left_child_ends(std::uint64_t began) { on_fiber.fork.ends(began); }

void give_turn_to_any() {
  if ((counts.at_forks & at_fork::hungry) != 0 && on_fiber.fork.gives_turn()) [[unlikely]]
    return;
  give_turn();
}

bool children_run_in_place() { return (counts.at_forks & at_fork::on_heap) == 0; }

void attach_forks() {
  const char* text = std::getenv("SOJOURN_EXECUTION");
  const std::string_view way = text != nullptr && *text != 0 ? text : "hybrid";
  if (way != "hybrid" && way != "heap") {
    throw error(format("SOJOURN_EXECUTION=%s is neither hybrid nor heap", text));
  }
  if (way == "heap") counts.at_forks |= at_fork::on_heap;
  const char* stats = std::getenv("SOJOURN_STATS");
  sojourn_fork_sites.all_counted = stats != nullptr && std::string_view(stats) == "on" ? 1 : 0;
  // In checked mode the frames of a child begin at a page boundary, which needs a mark in the
  // frame.
  if (checked()) counts.at_forks |= at_fork::marked;
}

void refuse_grain() {
  throw error("the grain of a parallel loop is the length of its shortest runs, 1 or more");
}
void refuse_window() {
  throw error("the in_flight of a window is how many calls may be under way at a time, 1 or more");
}

}  // namespace sojourn::detail
