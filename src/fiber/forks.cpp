// SPDX-License-Identifier: Apache-2.0
#include "fiber/forks.hpp"

#include <cstdlib>
#include <string_view>

#include "base/check.hpp"
#include "fiber/scheduler.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/fork.hpp"

namespace sojourn::detail {

unsigned forks_attend = 0;

bool fork_on_heap(bool refers) {
  // Frames that a child refers to must be in place while it runs.
  if (refers && !running_keeps_its_stack()) return false;
  ++counts.forks_on_heap;
  return true;
}

void attach_forks() {
  const char* text = std::getenv("SOJOURN_EXECUTION");
  const std::string_view way = text != nullptr && *text != 0 ? text : "hybrid";
  if (way != "hybrid" && way != "heap") {
    throw error(format("SOJOURN_EXECUTION=%s is neither hybrid nor heap", text));
  }
  forks_attend = way == "heap" ? 1 : 0;
}

void refuse_grain() {
  throw error("the grain of a parallel loop is the length of its shortest runs, 1 or more");
}

}  // namespace sojourn::detail
