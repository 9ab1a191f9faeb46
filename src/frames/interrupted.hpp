// SPDX-License-Identifier: Apache-2.0
// What a signal has interrupted. `context` is the third argument of the signal's handler.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// The registers that an unwinder needs to begin at an instruction. walk_*.S relies on their order.
struct code_position {
  std::uint64_t pc;
  std::uint64_t sp;
  std::uint64_t frame;  ///< rbp or x29.
};

/// The interrupted instruction, which has not been executed.
code_position interrupted_at(const void* context);

/// Where the function goes on that has just called the interrupted instruction. Requires: nothing
/// was pushed since that call.
code_position caller_of_interrupted(const void* context);

}  // namespace sojourn::detail
