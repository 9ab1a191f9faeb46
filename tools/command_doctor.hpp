// SPDX-License-Identifier: Apache-2.0
// `sojourn doctor`: says of each thing that a job needs whether it is here, and what to do if not.
#pragma once

#include <string>
#include <vector>

namespace sojourn::tools {

/// Runs the command: 0, or 1 when there is a failure. Throws sojourn::error with one sentence for
/// bad options.
int doctor_command(const std::vector<std::string>& words);

}  // namespace sojourn::tools
