// SPDX-License-Identifier: Apache-2.0
// A process beside the launcher that does nothing, until the launcher is killed (kill -9): then it
// ends what the job has left. The kernel ends the ranks with the launcher, but not what they have
// started. All that descends from ranks has the job's name in its environment, and the guard looks
// for that name in /proc. What clears its environment, or runs as another user, is not found.
#pragma once

#include <sys/types.h>

#include <string>

namespace sojourn::detail {

class job_guard {
 public:
  /// Starts the guard. Throws sojourn::error when that cannot be.
  job_guard();
  ~job_guard() { dismiss(); }
  job_guard(const job_guard&) = delete;
  job_guard& operator=(const job_guard&) = delete;

  /// What ranks get as SOJOURN_JOB: no other job has it.
  const std::string& job_name() const { return name_; }

  /// Ends the guard, since the job has ended in an orderly way. Returns when it has ended; may be
  /// called again.
  void dismiss();

 private:
  std::string name_;
  pid_t pid_;
  int lifeline_;  ///< Write end of a pipe that ends with this process.
};

}  // namespace sojourn::detail
