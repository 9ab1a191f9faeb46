// SPDX-License-Identifier: Apache-2.0
// Whether jobs can run on this host, with the limits of this process: what `sojourn doctor` shows,
// except for what only the command knows (its own build, other programs, a whole job).
#pragma once

#include <string>
#include <vector>

namespace sojourn {

enum class severity {
  ok,
  warning,  ///< Jobs run, but slower, smaller, or without something useful.
  failure,  ///< Jobs do not run.
};

struct finding {
  std::string check;  ///< What was looked at, in a few words that do not change.
  severity level = severity::ok;
  std::string found;   ///< What is there.
  std::string remedy;  ///< What to do about it; empty when all is well.
};

/// Tries what a job needs: addresses, limits, features of the kernel, cores, memory, the
/// container's restrictions. It tries whatever might fail in child processes, which have ended when
/// it returns.
///
/// Requires: this process has one thread. Not for use by ranks.
/// Blocks: mostly a tenth of a second, a few seconds for each trial that hangs. Throws nothing but
/// std::bad_alloc.
std::vector<finding> diagnose();

/// Whether reports can name source lines, inlined functions and variables here. No job needs that,
/// so diagnose() does not include it.
finding check_debug_information();

}  // namespace sojourn
