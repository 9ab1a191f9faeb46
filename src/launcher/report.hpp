// SPDX-License-Identifier: Apache-2.0
// What the launcher says of a rank that died: turns wait statuses and crash records into sentences
// and exit statuses. Pure functions, but for the symbols read from the program's file.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "job/segment.hpp"

namespace sojourn::detail {

/// One rank's end, as far as it is known.
struct rank_end {
  int rank = -1;
  pid_t pid = 0;
  std::optional<int> wait_status;         ///< As waitpid() gives it; absent: it has not ended yet.
  rank_state state = rank_state::absent;  ///< How far it had come.
  bool never_joined = false;              ///< It ended well, but other ranks wait for it to join.
  bool killed_for_memory = false;         ///< By the kernel, as far as that can be known.
};

/// True when the rank's end must end the job.
bool is_failure(const rank_end& end);

/// True when the rank ended as programs do that were given something wrong: with status 2, after a
/// sentence of its own.
bool is_refusal(const rank_end& end);

/// The exit status of a job that this end has ended. A crash record says more than the wait status
/// when the launcher had to end the rank while it was dying.
int job_status(const rank_end& end, const crash_record& crash);

/// "SIGSEGV (segmentation fault)".
std::string signal_text(int signal);

/// "was killed by SIGSEGV (segmentation fault)", "exited with status 3", …
std::string describe_end(const rank_end& end, const crash_record& crash);

/// The whole report, one or more lines that end with a newline: rank, signal, program, the sentence
/// it left, its stack. `program` is as the user typed it; `symbol_file` is the file whose symbols
/// name the stack's functions when it has fixed addresses.
std::string death_report(const rank_end& end, const crash_record& crash, const std::string& program,
                         const std::string& symbol_file, std::uint64_t sender = 0);

}  // namespace sojourn::detail
