// SPDX-License-Identifier: Apache-2.0
// Watches a job that has been started, until it has ended: forwards output, notices deaths, ends
// what must be ended, and says why. It sleeps in poll() and wakes only when something happens or a
// deadline that it has set is due; while a job runs undisturbed there is none.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "job/segment.hpp"
#include "launcher/guard.hpp"
#include "launcher/hangs.hpp"
#include "launcher/other_hosts.hpp"
#include "launcher/output.hpp"
#include "launcher/process.hpp"
#include "launcher/report.hpp"
#include "launcher/standard_outputs.hpp"
#include "sojourn/jobs/launcher.hpp"

namespace sojourn::detail {

class supervisor final : private host_supervision {
 public:
  /// `job` outlives this object. Ranks ring `bell`. `signals` are blocked. `strangers` are children
  /// of this process that have nothing to do with the job. `guard` is dismissed when the job has
  /// ended. `elsewhere`: null when all ranks are on this host; `ranks` are those that are.
  supervisor(const launch_plan& plan, job_segment& job, int bell,
             const std::vector<started_rank>& ranks, const sigset_t& signals,
             std::vector<pid_t> strangers, job_guard& guard, other_hosts* elsewhere = nullptr);
  ~supervisor() override;
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;

  /// Returns when all ranks have ended and all their output is written.
  void run();

  int status() const { return status_; }
  double elapsed_seconds() const;
  /// The first rank that failed, or -1.
  int failed_rank() const { return first_failure_ ? first_failure_->rank : -1; }

 private:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;

  /// Why the job is being ended. The first reason counts.
  enum class ending { none, failure, signal, output_lost, deadlock, elsewhere };

  struct rank_process {
    pid_t pid;  ///< 0: on another host.
    bool running = true;
    bool killed = false;  ///< By us: its death by SIGKILL says nothing about it.
    std::optional<int> wait_status = {};
  };

  struct watched_stream {
    output_stream stream;
    time last_read;
    bool held = false;  ///< Not read yet, for its rank may only repeat what another says.
  };

  void end_by_signal(int signal) override;
  void lose_elsewhere(int rank) override;
  void end_at_once(const std::string& sentence, int status) override;
  void ask_for_waits() override;
  std::optional<bool> standstill() const override { return hangs_.standstill(); }

  void wait_for_events();
  std::optional<time> next_deadline() const;
  void take_signals();
  void meet_deadlines();

  void on_signal(int signal);
  void on_quit();
  void report_hang(const hang_view& view);
  void reap();
  void on_rank_end(int rank);
  void release_errors(bool all);
  void read_refusal(int rank);
  void check_never_joined();
  void on_output_failure();
  void on_all_ended();

  void tell_others();
  bool may_report() const;
  void fail(const rank_end& end);
  void signal_ranks(int signal);
  void kill_ranks();
  void end_orphans();
  std::vector<pid_t> not_orphans() const;
  void say(const std::string& text) { outputs_.say(text); }
  void tell_of_settings();
  void report_failure();
  std::string death_text() const;
  std::string end_text() const;
  std::string then_failed_text(int first, bool refused) const;
  bool is_plain_exit(const rank_end& end) const;

  rank_end end_of(int rank) const;
  bool first_is_still_dying(time now) const;
  void look_at_sender();
  void tell_of_loss(int lost);
  const rank_block& block(int rank) const { return job_.ranks[rank]; }
  const planned_part& part_of(int rank) const { return plan_.parts[part_of_rank(plan_, rank)]; }
  bool all_ended() const { return running_ == 0; }
  bool streams_open() const;

  watched_stream& errors_of(std::size_t rank) { return streams_[rank * 2 + 1]; }

  const launch_plan& plan_;
  job_segment& job_;
  job_guard& guard_;
  other_hosts* elsewhere_;
  hang_watcher hangs_;
  std::vector<pid_t> strangers_;
  std::vector<rank_process> ranks_;
  int running_;
  int signal_fd_;
  standard_outputs outputs_;
  std::vector<watched_stream> streams_;  ///< Two a rank: standard output, standard error.
  std::string refusal_;                  ///< What the first rank that refused to run said.

  ending ending_ = ending::none;
  int status_ = 0;
  std::optional<rank_end> first_failure_;
  std::vector<int> also_failed_;   ///< Ranks that failed by themselves after the first.
  std::vector<int> never_joined_;  ///< Ranks that ended well without joining a job.
  std::string symbol_file_;
  std::uint64_t sender_ = 0;        ///< Code on another rank that called what failed first.
  std::uint64_t kills_for_memory_;  ///< The control group's count before the job.
  bool killed_ = false;
  bool all_ended_noted_ = false;
  bool death_told_ = false;
  bool reported_ = false;

  time started_;
  time ended_;
  std::optional<time> tell_death_at_;  ///< Set when the other ranks may go on for a while.
  std::optional<time> kill_at_;
  time patience_ends_at_;           ///< For the rank that died first, when it is still dying.
  std::optional<time> give_up_at_;  ///< When to stop waiting for ranks that SIGKILL did not end.
  std::optional<time> end_orphans_at_;  ///< Set when some are left after a job that ended well.
  std::optional<time> close_streams_at_;
  std::optional<time> drop_output_at_;
  std::optional<time> quit_again_until_;  ///< A second Ctrl-\ until then ends the job.
  std::optional<time> look_at_held_at_;
  std::optional<time> look_again_at_;  ///< For a rank that joins after another ended without.
  std::chrono::milliseconds look_again_after_{100};
};

}  // namespace sojourn::detail
