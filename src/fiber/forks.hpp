// SPDX-License-Identifier: Apache-2.0
// How children are run: in place until they block, or each on a stack of its own.
#pragma once

#include "sojourn/detail/forked.hpp"

namespace sojourn::detail {

/// Reads SOJOURN_EXECUTION. Throws sojourn::error when it names no way.
void attach_forks();
/// True unless SOJOURN_EXECUTION is heap.
bool children_run_in_place();

/// What the floor above does at forks and for children that leave.
struct fork_hooks {
  /// Called at a fork that looks closer (at_fork), on the stack of the fiber that forks. True when
  /// the child, which has that kind, is to leave.
  bool (*forks)(mark_kind kind) = [](mark_kind) { return false; };
  /// These do the work of leave_as_child() and left_child_ends().
  std::uint64_t (*leaves)() = [] { return std::uint64_t{0}; };
  void (*ends)(std::uint64_t began) = [](std::uint64_t) {};
  /// Called when a fiber gives its turn while a rank has nothing to do. True when the fiber need
  /// not give its turn any more.
  bool (*gives_turn)() = [] { return false; };
};
extern fork_hooks on_fork;

/// Suspends the running fiber behind all that are ready, here or on a rank that has nothing to do.
void give_turn_to_any();

}  // namespace sojourn::detail
