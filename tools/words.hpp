// SPDX-License-Identifier: Apache-2.0
// What the command says to its user.
#pragma once

#include <string>

namespace sojourn::tools {

/// Writes to standard output. finish_output() reports whether that failed.
void print(const std::string& text);

/// Writes to standard error, with control characters made visible. A failure is ignored: there is
/// nowhere to say so.
void complain(const std::string& text);

/// Writes out what was printed. 0, or errno of what was not written.
int finish_output();

}  // namespace sojourn::tools
