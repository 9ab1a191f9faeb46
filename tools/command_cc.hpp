// SPDX-License-Identifier: Apache-2.0
// `sojourn cc`: compiles and links programs that are written to the macros of ANL and PARMACS.
#pragma once

#include <string>
#include <vector>

namespace sojourn::tools {

/// Runs the command; the result is the exit status, that of the compiler where it fails. Throws
/// sojourn::error with one sentence.
int cc_command(const std::vector<std::string>& words);

}  // namespace sojourn::tools
