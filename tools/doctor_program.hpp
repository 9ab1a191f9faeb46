// SPDX-License-Identifier: Apache-2.0
// A program that the doctor runs, to see what comes of it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace sojourn::tools {

struct outcome {
  int status = -1;  ///< As waitpid() gives it.
  int reason = 0;   ///< Errno when nothing could be started.
  bool hung = false;
  std::string text;  ///< All that was written, to both streams.

  bool is_well() const;
};

/// Runs a program, and ends it when it takes longer.
outcome run_program(std::vector<std::string> words, std::chrono::seconds patience);

/// What `sojourn run` or a rank said of it first, or how it ended. Requires: it has not ended well.
std::string why_it_failed(const outcome& o, std::chrono::seconds patience);

/// A line of `sojourn run` without the name of the program that says it, and without the hint at
/// `sojourn doctor`.
std::string bare(std::string line);

}  // namespace sojourn::tools
