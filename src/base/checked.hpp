// SPDX-License-Identifier: Apache-2.0
// Checked mode: whether it is on, how its messages name functions, and which functions the user
// excuses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sojourn::detail {

/// Reads SOJOURN_CHECKED and SOJOURN_ALLOW. Throws sojourn::error. Requires: the worker thread does
/// not run yet.
void attach_checked();

/// Name of the function that contains the address `code`, without its parameters: `tree::walk`. A
/// lambda gets the name of the function that contains it. For a caller, pass the return address
/// less one.
std::string function_name(std::uint64_t code);

/// The callable for which a function of the runtime was instantiated, and which the compiler may
/// have inlined there, as the template arguments name it. "" for other functions. `symbol` is
/// demangled.
std::string callable_in(const std::string& symbol);

/// True for a function of the runtime or of the standard library: its frames lie between those of
/// the program. `symbol` is demangled.
bool is_library_function(std::string_view symbol);

/// True when SOJOURN_ALLOW=function:reason names `function`, in full or by its last components
/// (`walk` for `tree::walk`).
bool is_excused(std::string_view function);

}  // namespace sojourn::detail
