// SPDX-License-Identifier: Apache-2.0
// Starts the processes of a job. What a rank inherits is decided here: its environment, its three
// standard descriptors, the job's memory, its core, its signal dispositions, and that it dies with
// the launcher.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "job/segment.hpp"
#include "sojourn/jobs/launcher.hpp"

namespace sojourn::detail {

/// Descriptors that launching a job of so many ranks takes, with those that are open now.
rlim_t open_files_needed(int rank_count);

/// What the launcher changes in its own process while a job runs; put back on destruction.
/// Ranks are started with the state from before.
class process_state {
 public:
  /// Blocks the signals that the launcher waits for, ignores those that failing writes raise, opens
  /// the standard descriptors that are closed, adopts the orphans of ranks, and allows `open_files`
  /// descriptors. Throws sojourn::error when the limit on open files is too low.
  explicit process_state(rlim_t open_files);
  ~process_state();
  process_state(const process_state&) = delete;
  process_state& operator=(const process_state&) = delete;

  /// The signals that the launcher acts on: those that end the job, SIGUSR1 and SIGCHLD; blocked.
  const sigset_t& awaited_signals() const { return awaited_; }
  /// Of those, the ones that end a job which is not running yet.
  const sigset_t& ending_signals() const { return ending_; }

  /// Gives the calling process, a fresh child, the state from before.
  void restore_in_child() const;

 private:
  sigset_t awaited_;
  sigset_t ending_;
  sigset_t mask_before_;
  struct sigaction pipe_before_;
  struct sigaction file_size_before_;
  struct sigaction child_before_;
  rlimit files_before_;
  int subreaper_before_ = 0;
};

struct started_rank {
  pid_t pid;
  int output;  ///< Read end of the pipe behind the rank's standard output, non-blocking.
  int errors;  ///< The same for standard error.
};

/// A signal that ends the job came while ranks were being started; no rank is left.
struct start_interrupted {
  int signal;
};

/// Starts the plan's ranks of this host. When one cannot be started, ends those that were and
/// throws sojourn::error; when a signal comes meanwhile, start_interrupted. `job_name` is put into
/// their environment. `strangers` are children of this process that have nothing to do with the
/// job.
std::vector<started_rank> start_ranks(const launch_plan& plan, const job_segment& job,
                                      const job_fds& fds, const process_state& state,
                                      const std::string& job_name,
                                      const std::vector<pid_t>& strangers);

/// Children of this process but for those in `except`: processes that ranks started, adopted when
/// their parents ended. Includes those that have ended and were not waited for. Empty where the
/// kernel does not say.
std::vector<pid_t> adopted_children(const std::vector<pid_t>& except);

/// Waits for those adopted children that have ended.
void reap_adopted(const std::vector<pid_t>& except);

/// Kills the adopted children that still run, and what they have started; returns their names and
/// numbers.
std::vector<std::string> end_adopted(const std::vector<pid_t>& except);

}  // namespace sojourn::detail
