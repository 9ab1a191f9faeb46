// SPDX-License-Identifier: Apache-2.0
// What the supervisor of the ranks of this host has to do with those of other hosts: what it tells
// of its own, and what it is told to do. The agent of the host implements it (hosts/agent.hpp).
#pragma once

#include <poll.h>
#include <sys/resource.h>

#include <chrono>
#include <optional>
#include <vector>

#include "job/segment.hpp"
#include "launcher/told.hpp"
#include "observe/hang_view.hpp"

namespace sojourn::detail {

/// What the supervisor does when other hosts say so.
class host_supervision {
 public:
  virtual ~host_supervision() = default;

  /// As if this process had got the signal.
  virtual void end_by_signal(int signal) = 0;
  /// A rank of another host has failed, and that ends the job: this host's ranks learn of it, have
  /// the time that they get after a death, and are ended. That host reports the death.
  virtual void lose_elsewhere(int rank) = 0;
  /// Ends the ranks of this host at once, after a sentence on standard error, or none.
  virtual void end_at_once(const std::string& sentence, int status) = 0;
  /// Asks this host's ranks what they wait for; tell_waits() is called with what they say.
  virtual void ask_for_waits() = 0;
  /// None while ranks of this host make progress; after so long without, whether some of them wait.
  virtual std::optional<bool> standstill() const = 0;
};

class other_hosts {
 public:
  using clock = std::chrono::steady_clock;

  virtual ~other_hosts() = default;

  /// Descriptors that it opens, at most, while the job runs.
  virtual rlim_t open_files_needed() const = 0;
  /// Before the ranks are started: fills in what they find in the segment.
  virtual void prepare(job_segment& job) = 0;

  /// Adds what the supervisor is to wait for in poll(2).
  virtual void add_waits(std::vector<pollfd>& waits) = 0;
  virtual std::optional<clock::time_point> next_deadline() const = 0;
  /// Something has happened, perhaps here.
  virtual void look(host_supervision& here) = 0;

  /// What this host's ranks wait for, since that was asked for.
  virtual void tell_waits(const hang_view& view) = 0;

  /// All ranks of this host have ended, and have told this before.
  virtual void add_told(const told_of_job& told) = 0;

  /// A rank of this host has ended in the middle of the job.
  virtual void tell_loss(int rank) = 0;

  /// This host ends the job, with this status: by a rank that has failed, or, when that is -1, for
  /// another reason. Called once.
  virtual void ends_job(int rank, int status) = 0;
  /// After ends_job(): whether no other host had ended the job before; none while that is not
  /// known.
  virtual std::optional<bool> was_first() const = 0;
};

}  // namespace sojourn::detail
