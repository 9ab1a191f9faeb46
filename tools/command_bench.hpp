// SPDX-License-Identifier: Apache-2.0
// `sojourn bench`: hands over to the program that measures.
#pragma once

#include <string>
#include <vector>

namespace sojourn::tools {

/// Executes bench_driver, which lies beside this command or where Sojourn is installed, with
/// `words` as its arguments. Returns only by throwing sojourn::error, with one sentence.
int bench_command(const std::vector<std::string>& words);

/// Where that program is expected, in the build tree or installed. Throws sojourn::error when the
/// system does not say where this command is.
std::string bench_driver();

}  // namespace sojourn::tools
