// SPDX-License-Identifier: Apache-2.0
// `sojourn new`: writes a small project to begin with.
#pragma once

#include <string>
#include <vector>

namespace sojourn::tools {

/// Writes the folder that `words` names and says how to build what is in it; the result is the exit
/// status. Throws sojourn::error with one sentence when nothing was written.
int new_command(const std::vector<std::string>& words);

}  // namespace sojourn::tools
