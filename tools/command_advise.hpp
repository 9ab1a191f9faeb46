// SPDX-License-Identifier: Apache-2.0
// `sojourn advise`: which word would cost least at each call of an object on another rank.
#pragma once

#include <string>
#include <vector>

namespace sojourn::tools {

/// Reads what `sojourn run --stats --stats-json FILE` has written, and says what it advises; the
/// result is the exit status. Throws sojourn::error with one sentence when the file is no such one.
int advise_command(const std::vector<std::string>& words);

}  // namespace sojourn::tools
