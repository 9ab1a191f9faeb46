// SPDX-License-Identifier: Apache-2.0
// Calls a function so that an unwinder started in it walks a stack that does not run.
#pragma once

#include <cstdint>

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// The registers that an unwinder needs to go on from a call. The assembly relies on their order.
struct call_context {
  std::uint64_t pc;
  std::uint64_t sp;
  std::uint64_t frame;
};

/// Calls fn(argument) so that an unwinder, started in it, finds `from` as its caller
/// (call_below_*.S).
extern "C" void sojourn_call_as_if_from(const call_context* from, void (*fn)(void*),
                                        void* argument);

/// The call that the suspended `p` waits in. Requires: `p` is in place.
call_context caller_of(const piece* p);

/// Calls fn(argument) so that an unwinder started in it finds the frames of the suspended `p`.
/// Requires: `p` is in place, and this does not run on its stack.
void call_below(const piece* p, void (*fn)(void*), void* argument);

}  // namespace sojourn::detail
