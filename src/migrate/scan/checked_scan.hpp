// SPDX-License-Identifier: Apache-2.0
// Checked mode at a migration: looks at the words that would move one by one. The first that points
// to what stays behind ends the job, with the function, the place in its frame and, where debug
// information says, the variable.
//
// A dead word must not end a correct program, and a stack is full of them. So a word counts when
//   - it points to the start of an object that the C library's allocator holds now (freed ones are
//     told apart),
//   - it points into the frames of callers, and lies where the stack was cleared when the
//     activation began (sojourn_call_marked_checked), so that only the activation itself can have
//     written it,
//   - it points into the stack of another fiber,
//   - it is the return address of a frame in a library, which the unwinder walks through,
//   - it points into a library, or to an object that was destroyed, and debug information names the
//     variable that it is.
// For the first three, debug information tells a dead word from a variable, in memory or in a
// register; without it, the word only causes a warning.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// Ends the job when the frames [p->sp, hi) must not go to rank `to`. `oldest`: the mark at which
/// these frames end, or null; `caller_waits`: the frames above `hi` wait for the result of these.
/// Requires: the piece is in place, and this is called below its frames, on their stack, or, when
/// the whole piece moves, on the scheduler's stack.
void check_departure(const piece* p, std::uint64_t hi, bool caller_waits, const mark* oldest,
                     int to);

/// For the handler of SIGSEGV: when `address` lies in frames of the callers of the running
/// activation, which migrated without them, writes a sentence that says so and returns true.
bool describe_caller_access(std::uint64_t address, bool writes, char* text, std::size_t room);

/// Warns, once per function, that the function does not migrate, and says why, if its author may
/// not have thought of the reason: an exception in flight, a static being initialised.
void name_refusal(const piece* p, int to);

}  // namespace sojourn::detail
