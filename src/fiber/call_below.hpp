// SPDX-License-Identifier: Apache-2.0
// Calls a function so that an unwinder started in it walks the frames of a suspended piece.
#pragma once

#include "fiber/piece.hpp"
#include "frames/interrupted.hpp"

namespace sojourn::detail {

/// The call that the suspended `p` waits in. Requires: `p` is in place.
code_position caller_of(const piece* p);

/// Calls fn(argument) so that an unwinder started in it finds the frames of the suspended `p`.
/// Requires: `p` is in place, and this does not run on its stack.
void call_below(const piece* p, void (*fn)(void*), void* argument);

}  // namespace sojourn::detail
