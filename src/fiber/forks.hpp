// SPDX-License-Identifier: Apache-2.0
// How children are run: in place until they block, or each on a stack of its own.
#pragma once

#include "sojourn/detail/forked.hpp"

namespace sojourn::detail {

/// Reads SOJOURN_EXECUTION. Throws sojourn::error when it names no way.
void attach_forks();
/// True unless SOJOURN_EXECUTION is heap.
bool children_run_in_place();

/// Suspends the running fiber behind all that are ready, here or on a rank that has nothing to do.
void give_turn_to_any();

}  // namespace sojourn::detail
