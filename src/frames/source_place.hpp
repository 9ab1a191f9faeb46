// SPDX-License-Identifier: Apache-2.0
// Places in the program's code, as "btree.cpp:12".
#pragma once

#include <cstdint>
#include <string>

namespace sojourn::detail {

/// Returns `code` if it lies in the program's file; otherwise calling_code(hi), or `code` if that
/// is 0.
std::uint64_t code_in_program(std::uint64_t code, std::uint64_t hi);

/// The address of a call in the program's youngest function on the running stack, whose oldest
/// frames end at `hi`; 0 when there is none.
std::uint64_t calling_code(std::uint64_t hi);

/// "main.cpp:41" of the program's own function at this instruction, where it has debug information;
/// else a function's name. "" of 0. Remembers its answers. Allocates.
std::string source_place(std::uint64_t code);

}  // namespace sojourn::detail
