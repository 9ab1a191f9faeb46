// SPDX-License-Identifier: Apache-2.0
// Whose code is this? One answer for reports, for checks and for signal handlers: by the name of
// the function, as tables of symbols or debug information have it, and by marks on the few
// functions of the runtime that call the program.
#pragma once

#include <cstdint>
#include <string_view>

/// Marks a function of the runtime that calls the program. While the program runs it must be ready
/// for all that a page fault in the program may do, such as answering other ranks: it keeps nothing
/// in hand that this would change. It must be a plain function of a source file. The compiler makes
/// no copy of it, which would lie elsewhere.
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
/// namespace to inlined functions: these are known by their files.
bool is_runtime_file(std::string_view file);

/// Whether the address is one of the program's file.
bool is_in_program(std::uint64_t code);

/// Has owner_in_signal() know the functions of the program's file, from its table of symbols.
void learn_code_owners();
/// False: the program's file has no table of symbols.
bool knows_code_owners();
/// By the address; all code outside of the program's file counts as the program's.
/// Async-signal-safe. Requires: knows_code_owners().
code_owner owner_in_signal(std::uint64_t code);

}  // namespace sojourn::detail
