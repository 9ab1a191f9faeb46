// SPDX-License-Identifier: Apache-2.0
// The context with which the older side of a mark in the tables goes on in its handler, if the
// scheduler resumes that side later. It lies right below the frame that has the handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frames/unwind_tables.hpp"

namespace sojourn::detail {

/// The words of such a context. The registers lie in reverse order, as switch_*.S pops them from
/// the stack.
inline constexpr std::size_t context_registers = 1;
inline constexpr std::size_t context_pc = context_registers + preserved_registers;
inline constexpr std::size_t context_words = context_pc + 5;
inline constexpr std::size_t handler_context_bytes = context_words * sizeof(std::uint64_t);

}  // namespace sojourn::detail
