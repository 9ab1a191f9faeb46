// SPDX-License-Identifier: Apache-2.0
// Names of functions as messages show them.
#pragma once

#include <cstdint>
#include <string>

namespace sojourn::detail {

/// Name of the function that contains the address `code`, without its parameters: `tree::walk`. A
/// lambda gets the name of the function that contains it. For a caller, pass the return address
/// less one.
std::string function_name(std::uint64_t code);

/// The callable for which a function of the runtime was instantiated, and which the compiler may
/// have inlined there, as the template arguments name it. "" for other functions. `function` is
/// demangled.
std::string callable_in(const std::string& function);

/// `function`, demangled, without result, parameters and template arguments; "" for functions that
/// are not the program's. A lambda is named after the function it stands in.
std::string short_name(const std::string& function);

}  // namespace sojourn::detail
