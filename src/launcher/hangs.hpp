// SPDX-License-Identifier: Apache-2.0
// The launcher's part in explaining hangs: notices that a job stands still, asks the ranks what
// they wait for, and collects the answers. It never blocks: the supervisor calls look() when
// something has happened or a deadline is due.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "job/segment.hpp"
#include "launcher/kernel_threads.hpp"
#include "observe/hang_report.hpp"

namespace sojourn::detail {

/// Why a standstill of so many seconds is reported: a clause.
std::string standstill_text(double seconds);

class hang_watcher {
 public:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;

  /// `bell`: what ranks ring. `watchdog_seconds`: 0 for none.
  hang_watcher(job_segment& job, int bell, double watchdog_seconds);

  int bell() const { return bell_; }
  std::optional<time> next_deadline() const;

  /// Asks all ranks for a report, unless one is under way.
  void ask(const std::string& why);

  /// Where there are other hosts, nothing is reported of a standstill, which is here alone perhaps.
  /// None while ranks of this host make progress; else whether some of them wait.
  std::optional<bool> standstill() const { return standstill_; }

  /// Does what is due. Returns the answers when they are complete. `running` tells which processes
  /// have not ended.
  std::optional<hang_view> look(const std::vector<bool>& running);

 private:
  struct progress {
    std::uint64_t counted = 0;
    std::uint64_t reads = 0;
    /// Fibers it had resumed at most when it was last seen to go on, without those that only gave
    /// their turn.
    std::int64_t resumed_at_most = 0;
    std::uint64_t yields = 0;
    std::uint64_t yields_when_asked = 0;  ///< `yields` when turns_are_many() last looked, …
    std::chrono::nanoseconds ran_when_asked = {};  ///< … and what the rank had had of a core then.
    std::uint64_t bytes_read = 0;  ///< Bytes of the global heap that it read or wrote.
    std::string sleep;             ///< The sleep in the kernel that it was last seen in, or "".
    time since = {};
    time runs_since = {};            ///< Since then not seen asleep or in its scheduler.
    std::uint32_t report_given = 0;  ///< The number of its last answer.
    bool waits = false;        ///< A fiber of it had waited long at the last look for a circle.
    bool is_told = false;      ///< A report has said that it computes or is stopped.
    bool was_stopped = false;  ///< It was stopped when it was last looked at.
  };
  struct request {
    std::string why;
    bool proven;
    bool by_hand;  ///< Somebody asked for it: ranks in system calls are interrupted, too.
    time at;
    bool brief = false;        ///< Only to look whether fibers wait in a circle.
    bool circle_only = false;  ///< Nothing is reported unless they do.
    time interrupted_at = {};
  };

  /// A rank from which an answer is wanted.
  struct asked_rank {
    bool interrupted = false;
    bool in_system_call = false;  ///< It was, when it was last to be interrupted.
    core_use core = {};           ///< `ran`: at the first interrupt; `turns`: at the last.
  };

  void hear_bell();
  void sample(time now);
  void look_at_ranks(time now, bool some_sleep);
  void look_for_circle(const std::vector<bool>& running, time now);
  bool someone_waits_long(const hang_view& view) const;
  bool waits_long(const rank_report& report) const;
  bool is_told(const hang_view& view, const std::vector<told_fiber>& circle) const;
  rank_condition what_holds(std::size_t rank) const;
  rank_condition standstill_of(std::size_t rank) const;
  bool has_sleeper(int rank, time now) const;
  bool sleeps_on(std::size_t rank);
  void start(request r);
  thread_id worker(std::size_t rank) const;
  bool turns_are_many(std::size_t rank, std::uint64_t yields, time now);
  bool takes_part(std::size_t rank, const std::vector<bool>& running) const;
  bool has_answered(std::size_t rank) const;
  bool has_stack(std::size_t rank) const;
  bool is_in_system_call(std::size_t rank) const;
  bool may_answer(std::size_t rank, time now) const;
  bool interrupts_are_due(time now);
  bool has_enough(const std::vector<bool>& running, time now);
  void interrupt(std::size_t rank);
  hang_view collect(const std::vector<bool>& running, time now) const;

  job_segment& job_;
  watch_area area_;
  int bell_;
  std::chrono::nanoseconds watchdog_;
  std::optional<time> sample_at_;
  std::vector<progress> progress_;
  time progress_at_;  ///< When any rank last made progress.
  bool reported_ = false;
  std::optional<bool> standstill_;
  std::optional<time> circle_at_;    ///< When to look for a circle of waits.
  std::optional<hang_view> waited_;  ///< The first look at a circle that is still to be proven.
  std::set<std::pair<int, std::uint64_t>>
      told_waits_;  ///< Waits in circles that were reported: rank and fiber_record::since.
  std::uint32_t asked_by_ranks_ = 0;
  std::uint32_t number_ = 0;  ///< Of the last request.
  std::optional<request> request_;
  std::vector<asked_rank> asked_;
};

}  // namespace sojourn::detail
