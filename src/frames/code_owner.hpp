// SPDX-License-Identifier: Apache-2.0
// Whose code is this? Reports, checks and signal handlers get the same answer. It follows from the
// name of the function, as tables of symbols or debug information have it, and from marks on the
// few functions of the runtime that call the program.
#pragma once

#include <cstdint>
#include <string_view>

/// Marks a function of the runtime that calls the program. A page fault in the program may do
/// anything that a call of the runtime may do, such as answering other ranks, so a marked function
/// must be in the middle of nothing that this would change. It must be a plain function of a source
/// file. The mark keeps the compiler from making a copy of it, which would lie elsewhere.
#if defined(__clang__)
#define SOJOURN_CALLS_PROGRAM __attribute__((noinline, section("sojourn_calls_program")))
#else
#define SOJOURN_CALLS_PROGRAM __attribute__((noipa, section("sojourn_calls_program")))
#endif

namespace sojourn::detail {

enum class code_owner : std::uint8_t {
  program,              ///< Also functions of C libraries, which have names like any other.
  library,              ///< The standard library's, the compiler's, or where a stack begins.
  runtime,              ///< Also templates of the standard library made for types of the runtime.
  runtime_for_program,  ///< A template of the runtime made for types of the program, which may have
                        ///< functions of the program inlined.
  calls_program         ///< Marked with SOJOURN_CALLS_PROGRAM.
};

/// By a name as a table of symbols has it: mangled, if it is one of C++.
code_owner owner_of_symbol(std::string_view symbol);
/// By a name as it is written in the source: demangled, with or without result and parameters. Does
/// not tell runtime_for_program from runtime.
code_owner owner_of_name(std::string_view name);

/// By the address; remembers its answers. Not for signal handlers.
code_owner owner_of_code(std::uint64_t code);

/// True for the files of the runtime and the system's headers. Debug information often gives no
/// namespace to inlined functions, so these are recognised by their files.
bool is_runtime_file(std::string_view file);

/// Whether the address is one of the program's file.
bool is_in_program(std::uint64_t code);

/// Has owner_in_signal() know the functions of the program's file, from its table of symbols.
void learn_code_owners();
/// False: the program's file has no table of symbols.
bool knows_code_owners();
/// The same by the address alone: all code outside of the program's file counts as the program's.
/// Async-signal-safe. Requires: knows_code_owners().
code_owner owner_in_signal(std::uint64_t code);

}  // namespace sojourn::detail
