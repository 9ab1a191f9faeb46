// SPDX-License-Identifier: Apache-2.0
// What is known of a job that may hang: of each rank, how it is and what it has told of its waits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/wait_report.hpp"

namespace sojourn::detail {

enum class rank_condition {
  absent,     ///< Has not joined the job.
  waiting,    ///< Sleeps, or has nothing to do: `report` tells of all its fibers.
  computing,  ///< Did not come to its dispatcher: `report` has the stack of what it runs, and its
              ///< other fibers.
  silent,     ///< Has not answered: there is no report.
  stopped,    ///< Its process does not run, because of SIGSTOP or a debugger.
  frozen,     ///< Its process does not run, because its control group is frozen.
  dying,      ///< Its process is writing a core.
  finished,   ///< Its part of the job is over.
};

struct rank_view {
  std::string program;  ///< As the user typed it, in a job of several programs; else "".
  std::string file;     ///< The file whose symbols name its functions.
  rank_condition condition = rank_condition::absent;
  std::int64_t pid = 0;
  bool in_system_call = false;
  double quiet_seconds = 0;  ///< For how long its counters have stood still, 0 when not known.
  rank_report report{};
};

/// A fiber of a rank's report, by its place there.
struct told_fiber {
  int rank;
  std::uint32_t number;
};

struct hang_view {
  std::string why;      ///< Why this is reported: a clause for people.
  bool proven = false;  ///< Nothing can happen any more.
  std::vector<rank_view> ranks;
  std::vector<told_fiber> circle = {};  ///< Proven to wait for each other (wait_circle.hpp).
};

}  // namespace sojourn::detail
