// SPDX-License-Identifier: Apache-2.0
// Calls that an unwinder takes for ones made on a stack that does not run.
#pragma once

#include <cstdint>

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// Registers that an unwinder needs to go on from a call. In this order: the assembly knows it.
struct call_context {
  std::uint64_t pc;
  std::uint64_t sp;
  std::uint64_t frame;
};

/// Calls fn(argument) so that an unwinder, started in it, finds `from` as its caller
/// (call_below_*.S).
extern "C" void sojourn_call_as_if_from(const call_context* from, void (*fn)(void*),
                                        void* argument);

/// The call that a suspended piece waits in. Requires: it is in place.
call_context caller_of(const piece* p);

/// Calls fn(argument) where an unwinder that is started in it finds the frames of a suspended
/// piece. Requires: it is in place, and this is not its stack.
void call_below(const piece* p, void (*fn)(void*), void* argument);

}  // namespace sojourn::detail
