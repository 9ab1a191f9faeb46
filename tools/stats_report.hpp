// SPDX-License-Identifier: Apache-2.0
// What a job's counters become: a table for people, JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "sojourn/jobs/launcher.hpp"

namespace sojourn::tools {

/// "rank 0", "ranks 1 to 3"
std::string ranks_text(const planned_part& part);

/// Counters, each rank's and their sum, without the rows that are all zero. At most eight ranks
/// stand side by side.
std::string stats_table(const launch_plan& plan, const launch_result& result);

/// Lines with columns of equal width: the first is aligned to the left, the others to the right.
std::string aligned(const std::vector<std::vector<std::string>>& cells);

/// Where the program forks, how many children blocked, how their marks are found, and what either
/// way costs, in instructions; "" when it does not fork.
std::string forks_table(const launch_result& result);

/// Where the program calls objects of other ranks, how it does so, and what the other ways would
/// cost; "" when it does not.
std::string calls_table(const launch_result& result);

/// {"ranks": N, "program": "…", "command": […], "status": S, "failed_rank": R (of a job that
/// failed), "elapsed_seconds": T,
///  "counters": {"name": {"per_rank": […], "sum": X}, …},
///  "forks" (with SOJOURN_STATS=on, of the ranks that ended well): [{"place": "…", …}, …]}
///  "calls" (likewise): [{"place": "…", "method": "…", "said": "automatic", "now": "cache", …}, …]}
/// A job of several programs has "programs": [{"first_rank": F, "ranks": N, "program", "command"},
/// …] too; "program" and "command" are then those of rank 0.
std::string stats_json(const launch_plan& plan, const launch_result& result);

/// The file that --stats-json names: known to be writable before the job starts, written in one
/// step after it. A reader sees the old contents or the new, never a part.
class stats_file {
 public:
  /// Throws sojourn::error with one sentence when a file of this name cannot be written. An empty
  /// name means no file.
  explicit stats_file(const std::string& name);

  /// Returns "" or one sentence that says why nothing was written.
  std::string write(const std::string& text) const;

 private:
  std::string name_;         ///< As given.
  std::string path_;         ///< With links followed, so that a link stays one.
  bool is_replaced_ = true;  ///< False for what is not a regular file: a pipe, a terminal.
};

}  // namespace sojourn::tools
