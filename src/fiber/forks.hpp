// SPDX-License-Identifier: Apache-2.0
// How children are run: in place until they block, or each on a stack of its own.
#pragma once

#include "sojourn/detail/forked.hpp"

namespace sojourn::detail {

/// Reads SOJOURN_EXECUTION. Throws sojourn::error when it names no way.
void attach_forks();
/// SOJOURN_EXECUTION does not say heap.
bool children_run_in_place();

/// Told of a fork that looks closer, by the fiber that forks, on its stack (set by the floor
/// above).
extern void (*on_fork)();

}  // namespace sojourn::detail
