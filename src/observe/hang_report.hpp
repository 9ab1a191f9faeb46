// SPDX-License-Identifier: Apache-2.0
// What is made of the ranks' reports: the wait-for graph of a job, one sentence that says where it
// leads, a text for people and JSON for programs.
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
  silent,     ///< It told neither.
  stopped,    ///< Its process does not run: by SIGSTOP, or a debugger holds it.
  frozen,     ///< The same: its control group is frozen.
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

struct hang_report {
  std::string sentence;  ///< Without a full stop or newline.
  std::string text;      ///< Lines, the sentence last.
  std::string json;
  bool no_main_goes_on = false;  ///< All main fibers wait for the circle, or have returned.
};

/// `speaker` stands before the first line and the sentence: "sojourn run: ".
hang_report explain(const hang_view& view, const std::string& speaker);

}  // namespace sojourn::detail
