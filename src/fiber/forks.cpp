// SPDX-License-Identifier: Apache-2.0
#include "fiber/forks.hpp"

#include <cstdlib>
#include <string_view>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/fork.hpp"

namespace sojourn::detail {

void (*on_fork)() = [] {};

bool attend_fork(mark_kind kind) {
  if (children_run_in_place()) {
    on_fork();
    return false;
  }
  // Frames that a child refers to must be in place while it runs.
  if (is_by_reference(kind) && !running_keeps_its_stack()) return false;
  ++counts.forks_on_heap;
  return true;
}

bool children_run_in_place() { return (counts.at_forks & at_fork::on_heap) == 0; }

void attach_forks() {
  const char* text = std::getenv("SOJOURN_EXECUTION");
  const std::string_view way = text != nullptr && *text != 0 ? text : "hybrid";
  if (way != "hybrid" && way != "heap") {
    throw error(format("SOJOURN_EXECUTION=%s is neither hybrid nor heap", text));
  }
  if (way == "heap") counts.at_forks = at_fork::on_heap;
}

void refuse_grain() {
  throw error("the grain of a parallel loop is the length of its shortest runs, 1 or more");
}

}  // namespace sojourn::detail
