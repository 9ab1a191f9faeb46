// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace sojourn::detail {

/// Clear the stack below the caller's frame, where nothing is in use. Frames that lie there later
/// then hold no words of earlier calls in parts that they do not write at once. clear_stack_below()
/// clears at most `most` bytes; clear_used_stack_below() clears all that was ever used, and costs a
/// system call.
void clear_stack_below(std::size_t most);
inline constexpr std::size_t cleared_after_walk = 64 << 10;  ///< What walking the stack leaves.
void clear_used_stack_below();

}  // namespace sojourn::detail
