// SPDX-License-Identifier: Apache-2.0
// How children are run: in place until they block, or each on a stack of its own.
#pragma once

#include "sojourn/detail/forked.hpp"

namespace sojourn::detail {

/// Reads SOJOURN_EXECUTION. Throws sojourn::error when it names no way.
void attach_forks();
/// SOJOURN_EXECUTION does not say heap.
bool children_run_in_place();

/// What the floor above does of children.
struct fork_hooks {
  /// Told of a fork that looks closer, by the fiber that forks, on its stack. True when the child,
  /// of that kind, is to leave.
  bool (*forks)(mark_kind kind) = [](mark_kind) { return false; };
  /// leave_as_child() and left_child_ends().
  std::uint64_t (*leaves)() = [] { return std::uint64_t{0}; };
  void (*ends)(std::uint64_t began) = [](std::uint64_t) {};
  /// Told, while a rank has nothing to do, of a fiber that gives its turn. True when it need not do
  /// so any more.
  bool (*gives_turn)() = [] { return false; };
};
extern fork_hooks on_fork;

/// Suspends the running fiber behind all that are ready, here or on a rank that has nothing to do.
void give_turn_to_any();

}  // namespace sojourn::detail
