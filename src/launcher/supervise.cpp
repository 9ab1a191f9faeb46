// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/kernel_files.hpp"
#include "launcher/caller_of_mark.hpp"
#include "launcher/kernel_kills.hpp"
#include "launcher/told.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {
namespace {

using std::chrono::milliseconds;

// After a first death: long enough for ranks that are dying of the same cause to say so themselves.
constexpr milliseconds last_words{100};
// The same when the dead rank had finished its part: the others are about to end well.
constexpr milliseconds last_words_after_finish{500};
// From SIGTERM to SIGKILL.
constexpr milliseconds terminate_grace{500};
// From SIGKILL to giving up on a process that the kernel cannot end (a hung file system).
constexpr milliseconds kill_patience{400};
// Descendants of a rank may keep its pipe open for ever; what they write later is not forwarded.
constexpr milliseconds pipe_patience{200};
// After Ctrl-C: how long a reader of our output that has stopped reading is waited for.
constexpr milliseconds reader_patience{1000};
// A prompt has no newline: on a terminal it is shown when this much time passes without more.
constexpr milliseconds partial_line_patience{100};
constexpr milliseconds look_again_max{500};
// Ranks that refuse to run all say the same. So a rank's standard error is not read until it has
// joined the job or ended, but no longer than this.
constexpr milliseconds refusal_patience{200};
constexpr milliseconds refusal_look{10};

// The rank that died first may still be writing its report when others have ended.
constexpr milliseconds dying_patience{500};
constexpr milliseconds look_at_dying{10};

// Two Ctrl-\ within this time end the job.
constexpr milliseconds quit_patience{2000};

constexpr std::size_t orphans_named = 8;

std::string executable_of(pid_t pid) {
  char path[4096];
  std::string link = "/proc/" + std::to_string(pid) + "/exe";
  ssize_t size = readlink(link.c_str(), path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "";
}

/// A place in the order of the deaths that were announced; those that were not come last.
std::uint32_t began_to_die(const rank_block& block) {
  return block.crash.order.load(std::memory_order_acquire) - 1;
}

bool crash_is_written(const rank_block& block) {
  return block.crash.written.load(std::memory_order_acquire) == 1;
}

}  // namespace

supervisor::supervisor(const launch_plan& plan, job_segment& job, int bell,
                       const std::vector<started_rank>& ranks, const sigset_t& signals,
                       std::vector<pid_t> strangers, job_guard& guard, other_hosts* elsewhere)
    : plan_(plan),
      job_(job),
      guard_(guard),
      elsewhere_(elsewhere),
      hangs_(job, bell, plan.options.watchdog_seconds),
      strangers_(std::move(strangers)),
      running_(static_cast<int>(ranks.size())),
      signal_fd_(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)),
      symbol_file_(plan.program),
      kills_for_memory_(kills_for_memory_of_group()),
      started_(clock::now()),
      ended_(started_) {
  const int all = plan.options.rank_count;
  streams_.reserve(static_cast<std::size_t>(all) * 2);
  for (int rank = 0; rank < all; ++rank) {
    const int here = rank - plan.first_here;
    const bool is_here = here >= 0 && here < plan.ranks_here;
    const started_rank started =
        is_here ? ranks[static_cast<std::size_t>(here)] : started_rank{0, -1, -1};
    ranks_.push_back({started.pid, is_here});
    std::string label = plan.options.label ? '[' + std::to_string(rank) + "] " : "";
    int writer = rank * 2;
    streams_.push_back({output_stream(started.output, writer, label, outputs_.output()), started_});
    streams_.push_back({output_stream(started.errors, writer + 1, label, outputs_.errors()),
                        started_, is_here && all > 1});
  }
  if (all > 1) look_at_held_at_ = started_ + refusal_look;
  if (signal_fd_ < 0) {
    int reason = errno;
    signal_ranks(SIGKILL);
    throw error(std::string("cannot wait for signals: ") + std::strerror(reason));
  }
}

supervisor::~supervisor() {
  if (signal_fd_ >= 0) close(signal_fd_);
}

double supervisor::elapsed_seconds() const {
  return std::chrono::duration<double>(ended_ - started_).count();
}

bool supervisor::streams_open() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const watched_stream& s) { return s.stream.is_open(); });
}

void supervisor::run() {
  while (!all_ended() || end_orphans_at_ || streams_open() || outputs_.has_pending() ||
         !reported_) {
    wait_for_events();
    // Signals first: Ctrl-C reaches the ranks as well, and their deaths by it are not failures.
    take_signals();
    if (elsewhere_ != nullptr) elsewhere_->look(*this);
    outputs_.write_some();
    if (outputs_.output().failure() != 0) on_output_failure();
    meet_deadlines();
    if (all_ended() && !end_orphans_at_ && !streams_open() && !reported_ && may_report()) {
      if (first_failure_) {
        report_failure();
      } else if (!also_failed_.empty()) {
        say(then_failed_text(-1, false));
      }
      if (ending_ == ending::none) tell_of_settings();
      reported_ = true;
    }
  }
}

void supervisor::wait_for_events() {
  std::vector<pollfd> waits;
  waits.push_back({signal_fd_, POLLIN, 0});
  outputs_.add_waits(waits);
  waits.push_back({ending_ == ending::none ? hangs_.bell() : -1, POLLIN, 0});
  std::size_t first_stream = waits.size();
  for (watched_stream& s : streams_) {
    waits.push_back({s.stream.wants_read() && !s.held ? s.stream.fd() : -1, POLLIN, 0});
  }

  const std::size_t streams_end = waits.size();
  if (elsewhere_ != nullptr) elsewhere_->add_waits(waits);

  int timeout_ms = -1;
  bool must_report =
      all_ended() && !end_orphans_at_ && !streams_open() && !outputs_.has_pending() && may_report();
  if (must_report) {
    timeout_ms = 0;
  } else if (std::optional<time> deadline = next_deadline()) {
    auto left = std::chrono::ceil<milliseconds>(*deadline - clock::now());
    timeout_ms = static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
  }
  if (poll(waits.data(), waits.size(), timeout_ms) <= 0) return;

  time now = clock::now();
  for (std::size_t i = 0; first_stream + i < streams_end; ++i) {
    if (waits[first_stream + i].revents == 0) continue;
    streams_[i].stream.read_some();
    streams_[i].last_read = now;
  }
}

std::optional<supervisor::time> supervisor::next_deadline() const {
  std::optional<time> next;
  auto consider = [&](std::optional<time> deadline) {
    if (deadline && (!next || *deadline < *next)) next = deadline;
  };
  for (const std::optional<time>& deadline :
       {tell_death_at_, kill_at_, give_up_at_, end_orphans_at_, close_streams_at_, drop_output_at_,
        look_at_held_at_, look_again_at_}) {
    consider(deadline);
  }
  if (ending_ == ending::none && !all_ended()) consider(hangs_.next_deadline());
  if (elsewhere_ != nullptr) consider(elsewhere_->next_deadline());
  for (const watched_stream& s : streams_) {
    if (s.stream.has_partial_line() && s.stream.sink().is_terminal()) {
      consider(s.last_read + partial_line_patience);
    }
  }
  return next;
}

void supervisor::take_signals() {
  signalfd_siginfo info;
  bool child_ended = false;
  while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      child_ended = true;
    } else if (signal == SIGUSR1) {
      hangs_.ask("a report was asked for");
    } else if (signal == SIGQUIT) {
      on_quit();
    } else {
      on_signal(signal);
    }
  }
  if (child_ended) reap();
}

void supervisor::on_quit() {
  time now = clock::now();
  if (ending_ != ending::none || (quit_again_until_ && now < *quit_again_until_)) {
    return on_signal(SIGQUIT);
  }
  quit_again_until_ = now + quit_patience;
  hangs_.ask("a report was asked for; Ctrl-\\ once more ends the job");
}

void supervisor::report_hang(const hang_view& view) {
  if (elsewhere_ != nullptr) return elsewhere_->tell_waits(view);
  hang_report report = explain(view, "sojourn run: ");
  say(report.text);
  if (plan_.options.on_hang_report) plan_.options.on_hang_report(report.json);
  if (!view.proven && !report.no_main_goes_on) return;
  ending_ = ending::deadlock;
  status_ = status_deadlock;
  tell_others();
  say("sojourn run: the job was ended; its exit status is " + std::to_string(status_) + "\n");
  kill_ranks();
}

void supervisor::meet_deadlines() {
  time now = clock::now();
  if (ending_ == ending::none && !all_ended()) {
    std::vector<bool> running;
    for (const rank_process& rank : ranks_) running.push_back(rank.running);
    if (std::optional<hang_view> view = hangs_.look(running)) {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        rank_view& told = view->ranks[rank];
        if (told.pid == 0) told.pid = ranks_[rank].pid;
        const planned_part& part = part_of(static_cast<int>(rank));
        if (plan_.parts.size() > 1) told.program = part.command.front();
        // The file of the part's first rank on this host is used for all ranks of the part.
        const auto first = static_cast<std::size_t>(std::max(part.first_rank, plan_.first_here));
        if (rank != first && !view->ranks[first].file.empty()) {
          told.file = view->ranks[first].file;
          continue;
        }
        told.file = executable_of(static_cast<pid_t>(told.pid));
        if (told.file.empty()) told.file = part.program;
      }
      report_hang(*view);
    }
  }
  auto due = [&](std::optional<time>& deadline) {
    if (!deadline || now < *deadline) return false;
    deadline.reset();
    return true;
  };
  if (due(look_at_held_at_)) {
    bool all = now - started_ >= refusal_patience;
    release_errors(all);
    if (!all) look_at_held_at_ = now + refusal_look;
  }
  if (due(tell_death_at_)) {
    say(death_text());
    death_told_ = true;
  }
  if (due(kill_at_)) {
    if (first_is_still_dying(now)) {
      kill_at_ = now + look_at_dying;
    } else {
      kill_ranks();
    }
  }
  if (due(give_up_at_) && !all_ended()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!ranks_[rank].running) continue;
      say("sojourn run: rank " + std::to_string(rank) + " (pid " +
          std::to_string(ranks_[rank].pid) + ") has not ended yet; the kernel will end it\n");
    }
    running_ = 0;
    on_all_ended();
  }
  if (due(look_again_at_)) check_never_joined();
  if (due(end_orphans_at_)) end_orphans();
  if (due(close_streams_at_)) {
    for (watched_stream& s : streams_) s.stream.finish();
  }
  if (due(drop_output_at_)) {
    for (watched_stream& s : streams_) s.stream.finish();
    outputs_.abandon_pending();
  }
  for (watched_stream& s : streams_) {
    if (s.stream.has_partial_line() && s.stream.sink().is_terminal() &&
        now - s.last_read >= partial_line_patience) {
      s.stream.flush_partial_line();
    }
  }
}

void supervisor::on_signal(int signal) {
  if (ending_ == ending::none) {
    ending_ = ending::signal;
    status_ = 128 + signal;
    tell_others();
    signal_ranks(SIGTERM);
    kill_at_ = clock::now() + terminate_grace;
    if (all_ended()) drop_output_at_ = clock::now();
    return;
  }
  // The second time, or while the job is being ended anyway: somebody wants it gone.
  if (!killed_) kill_ranks();
  drop_output_at_ = clock::now() + (all_ended() ? milliseconds(0) : reader_patience);
}

void supervisor::reap() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    int wait_status = 0;
    if (!ranks_[i].running || waitpid(ranks_[i].pid, &wait_status, WNOHANG) != ranks_[i].pid) {
      continue;
    }
    ranks_[i].running = false;
    bool by_us = ranks_[i].killed && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
    if (!by_us) ranks_[i].wait_status = wait_status;
    read_refusal(static_cast<int>(i));
    if (running_ > 0) --running_;
    on_rank_end(static_cast<int>(i));
    if (all_ended()) on_all_ended();
  }
  // Processes that ranks left behind are ours to wait for when they end.
  reap_adopted(not_orphans());
  if (end_orphans_at_ && adopted_children(not_orphans()).empty()) end_orphans_at_.reset();
}

/// From now on the standard error of ranks that have joined, or of all, is read.
void supervisor::release_errors(bool all) {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (all ||
        block(static_cast<int>(rank)).state.load(std::memory_order_acquire) != rank_state::absent) {
      errors_of(rank).held = false;
    }
  }
}

/// `rank` has ended. When it refused to run, or was ended because another did, its standard error
/// is passed on only if it differs from that of the first that refused.
void supervisor::read_refusal(int rank) {
  watched_stream& errors = errors_of(static_cast<std::size_t>(rank));
  if (!std::exchange(errors.held, false)) return;
  rank_end end = end_of(rank);
  if (end.state != rank_state::absent) return;
  if (is_refusal(end) || (!end.wait_status && !refusal_.empty())) {
    errors.stream.read_unless_said(refusal_);
  }
}

rank_end supervisor::end_of(int rank) const {
  const rank_process& process = ranks_[static_cast<std::size_t>(rank)];
  return {
      rank,  process.pid, process.wait_status, block(rank).state.load(std::memory_order_acquire),
      false, false};
}

void supervisor::on_rank_end(int rank) {
  rank_end end = end_of(rank);
  if (is_failure(end)) {
    if (ending_ == ending::none) {
      fail(end);
    } else if (first_failure_ && rank == first_failure_->rank) {
      // It was still dying when its record named it.
      first_failure_ = end;
      status_ = job_status(end, block(rank).crash);
      if (sender_ == 0) look_at_sender();
    } else if ((ending_ == ending::failure || ending_ == ending::elsewhere) && !killed_) {
      bool for_others = end.wait_status && WIFEXITED(*end.wait_status) &&
                        WEXITSTATUS(*end.wait_status) == status_rank_lost;
      if (!for_others) also_failed_.push_back(rank);
    }
    tell_of_loss(rank);
    if (elsewhere_ != nullptr) elsewhere_->tell_loss(rank);
  } else if (end.state == rank_state::absent) {
    never_joined_.push_back(rank);
  }
  check_never_joined();
}

void supervisor::check_never_joined() {
  if (never_joined_.empty() || ending_ != ending::none || all_ended()) return;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (block(rank).state.load(std::memory_order_acquire) == rank_state::absent) continue;
    // This rank has joined, so the job lacks those that ended without joining.
    rank_end end = end_of(never_joined_.front());
    end.never_joined = true;
    fail(end);
    return;
  }
  // No rank has joined: as a rule, a program without Sojourn. Joining makes no event to wait for,
  // so look again later.
  look_again_at_ = clock::now() + look_again_after_;
  look_again_after_ = std::min(look_again_after_ * 2, look_again_max);
}

void supervisor::fail(const rank_end& end) {
  ending_ = ending::failure;
  first_failure_ = end;
  // A rank that began to die earlier died first, even if it takes longer to be gone.
  int first = end.rank;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (began_to_die(block(rank)) < began_to_die(block(first))) first = rank;
  }
  if (first != end.rank) {
    first_failure_ = end_of(first);
    also_failed_.push_back(end.rank);
  }
  status_ = job_status(*first_failure_, block(first_failure_->rank).crash);
  tell_others();

  symbol_file_ = part_of(first_failure_->rank).program;
  // A rank may be the child of a wrapper, so what a living rank executes is the better source of
  // names. Only a rank with the same image runs the same file.
  const rank_block& dead = block(first_failure_->rank);
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const rank_block& other = block(rank);
    if (other.state.load(std::memory_order_acquire) != rank_state::attached ||
        other.image != dead.image) {
      continue;
    }
    std::string file = executable_of(other.pid.load(std::memory_order_relaxed));
    if (!file.empty()) {
      symbol_file_ = file;
      break;
    }
  }
  look_at_sender();
  const auto grace =
      std::chrono::ceil<milliseconds>(std::chrono::duration<double>(plan_.options.grace_seconds));
  const auto least = end.state == rank_state::finished ? last_words_after_finish : last_words;
  kill_at_ = clock::now() + std::max(grace, least);
  // By that time the dead rank's report is complete.
  if (grace > least) tell_death_at_ = clock::now() + least;
  patience_ends_at_ = *kill_at_ + dying_patience;
}

/// True while the rank that died first may still be dying. Writing a core may take as long as it
/// needs; a second Ctrl-C ends it.
bool supervisor::first_is_still_dying(time now) const {
  if (ending_ != ending::failure || !first_failure_) return false;
  if (!ranks_[static_cast<std::size_t>(first_failure_->rank)].running) return false;
  if (now < patience_ends_at_) return true;
  std::int32_t pid = block(first_failure_->rank).pid.load(std::memory_order_relaxed);
  return read_field("/proc/" + std::to_string(pid) + "/status", "CoreDumping") == "1";
}

/// Tells all ranks that `lost` is gone, so that their waits for it fail.
void supervisor::tell_of_loss(int lost) {
  if (job_.ranks[lost].lost.exchange(1) != 0) return;
  job_.ranks_lost.fetch_add(1);
  watch_area area = job_.watch();
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) area.wake(rank);
}

/// The frames that wait for what died lie in another rank's memory, which is there until we end
/// that rank.
void supervisor::look_at_sender() {
  const crash_record& crash = block(first_failure_->rank).crash;
  int waiting_at = crash.waiting_at - 1;
  if (!crash_is_written(block(first_failure_->rank)) || waiting_at < 0 ||
      waiting_at >= static_cast<int>(ranks_.size())) {
    return;
  }
  sender_ = crash.called_from;
  if (sender_ != 0) return;
  pid_t pid = block(waiting_at).pid.load(std::memory_order_relaxed);
  sender_ = pid > 0 ? caller_of_mark(pid, crash.mark) : 0;
}

/// What cannot be written to standard error alone is lost, as any program's would be; there is
/// nowhere to say so, and the job is worth more than its warnings.
void supervisor::on_output_failure() {
  if (ending_ != ending::none) return;
  ending_ = ending::output_lost;
  const int reason = outputs_.output().failure();
  if (reason == EPIPE) {
    status_ = 128 + SIGPIPE;  // As if SIGPIPE had ended us: whoever reads has gone on purpose.
  } else {
    status_ = 1;
    say(std::string("sojourn run: cannot write the job's output: ") + std::strerror(reason) + "\n");
  }
  tell_others();
  signal_ranks(SIGTERM);
  kill_at_ = clock::now() + terminate_grace;
}

void supervisor::end_by_signal(int signal) { on_signal(signal); }

void supervisor::lose_elsewhere(int rank) {
  tell_of_loss(rank);
  if (ending_ != ending::none) return;
  ending_ = ending::elsewhere;
  const auto grace =
      std::chrono::ceil<milliseconds>(std::chrono::duration<double>(plan_.options.grace_seconds));
  kill_at_ = clock::now() + std::max(grace, last_words);
}

void supervisor::end_at_once(const std::string& sentence, int status) {
  if (!sentence.empty()) say("sojourn run: " + sentence + "\n");
  if (ending_ == ending::none) {
    ending_ = ending::elsewhere;
    status_ = status;
    tell_others();
  }
  if (!killed_ && !all_ended()) kill_ranks();
}

void supervisor::ask_for_waits() { hangs_.ask("a report was asked for"); }

/// A rank that failed here may not have been the first of the job: the others know.
bool supervisor::may_report() const {
  return elsewhere_ == nullptr || !first_failure_ || elsewhere_->was_first().has_value();
}

void supervisor::tell_others() {
  if (elsewhere_ != nullptr)
    elsewhere_->ends_job(first_failure_ ? first_failure_->rank : -1, status_);
}

void supervisor::on_all_ended() {
  if (std::exchange(all_ended_noted_, true)) return;
  ended_ = clock::now();
  if (first_failure_ && !first_failure_->wait_status) {
    // It was still dying when its crash record named it.
    first_failure_->wait_status = end_of(first_failure_->rank).wait_status;
    status_ = job_status(*first_failure_, block(first_failure_->rank).crash);
  }
  kill_at_.reset();
  give_up_at_.reset();
  look_again_at_.reset();
  tell_death_at_.reset();
  // Once the guard has gone there is, as a rule, no child left to look for.
  guard_.dismiss();
  reap_adopted(not_orphans());
  if (ending_ != ending::none) {
    end_orphans();
  } else if (!adopted_children(not_orphans()).empty()) {
    // A filter behind a pipe (`> >(tee log)`) may have the last words of its rank to write.
    end_orphans_at_ = ended_ + pipe_patience;
  }
  close_streams_at_ = ended_ + pipe_patience;
  if (ending_ == ending::signal) drop_output_at_ = ended_ + reader_patience;
}

void supervisor::signal_ranks(int signal) {
  for (const rank_process& rank : ranks_) {
    if (rank.running) kill(rank.pid, signal);
  }
}

void supervisor::kill_ranks() {
  killed_ = true;
  kill_at_.reset();
  for (rank_process& rank : ranks_) rank.killed = rank.running;
  signal_ranks(SIGKILL);
  if (!all_ended()) give_up_at_ = clock::now() + kill_patience;
}

/// Children of this process that are not orphans of ranks.
std::vector<pid_t> supervisor::not_orphans() const {
  std::vector<pid_t> pids = strangers_;
  for (const rank_process& rank : ranks_) {
    if (rank.running) pids.push_back(rank.pid);
  }
  return pids;
}

void supervisor::end_orphans() {
  std::vector<std::string> ended = end_adopted(not_orphans());
  if (ending_ != ending::none || ended.empty()) return;
  // The job ended well, so nobody would expect that processes were killed.
  std::string which = ended.front();
  for (std::size_t i = 1; i < ended.size() && i < orphans_named; ++i) which += ", " + ended[i];
  if (ended.size() > orphans_named) which += " …";
  say("sojourn run: " + std::to_string(ended.size()) +
      (ended.size() == 1 ? " process that a rank" : " processes that ranks") +
      " had left running ended with the job: " + which + "\n");
}

void supervisor::tell_of_settings() {
  // What matched nothing here may have matched on another host: the head tells.
  if (elsewhere_ != nullptr) return;
  if (const std::string text = text_of_unmatched(told_by(job_, plan_).settings); !text.empty())
    say(text);
}

void supervisor::report_failure() {
  if (elsewhere_ != nullptr && !*elsewhere_->was_first()) {
    // The host of the first one reports how the job has ended.
    also_failed_.insert(also_failed_.begin(), first_failure_->rank);
    return say(then_failed_text(-1, false));
  }
  say((death_told_ ? "" : death_text()) + end_text());
}

/// Who has died, and of what.
std::string supervisor::death_text() const {
  rank_end end = *first_failure_;
  if (end.wait_status && WIFSIGNALED(*end.wait_status) && WTERMSIG(*end.wait_status) == SIGKILL) {
    end.killed_for_memory =
        kills_for_memory_of_group() > kills_for_memory_ || log_says_killed_for_memory(end.pid);
  }
  const std::string& program = part_of(end.rank).command.front();
  std::string text = death_report(end, block(end.rank).crash, program, symbol_file_, sender_);
  if (!is_plain_exit(end)) {
    text += "  on host " + host_name() + "; to run it again: " + command_line(plan_.options) + "\n";
  }
  if (!all_ended() && kill_at_) {
    std::string left = std::to_string(plan_.options.grace_seconds);
    left.erase(left.find_last_not_of('0') + 1);
    if (left.back() == '.') left.pop_back();
    text += "sojourn run: the other ranks may go on for " + left + " s (--grace)\n";
  }
  return text;
}

/// Of the ranks that failed later. `refused`: those that refused as well need no mention.
std::string supervisor::then_failed_text(int first, bool refused) const {
  std::string text;
  for (int rank : also_failed_) {
    if (rank == first) continue;
    rank_end other = end_of(rank);
    if (refused && is_refusal(other)) continue;
    std::string named = plan_.parts.size() > 1 ? ", " + part_of(rank).command.front() : "";
    text += "sojourn run: then rank " + std::to_string(rank) + " (pid " +
            std::to_string(other.pid) + named + ") " + describe_end(other, block(rank).crash) +
            "\n";
  }
  return text;
}

/// What the first death has led to.
std::string supervisor::end_text() const {
  const rank_end& end = *first_failure_;
  bool refused = is_refusal(end) && is_plain_exit(end);
  std::string text = then_failed_text(end.rank, refused);
  if (ranks_.size() > 1 && !refused) {
    text += "sojourn run: the job was ended; its exit status is " + std::to_string(status_) + "\n";
  }
  return text;
}

/// True when the rank exited by itself, without a crash record: the program has said why.
bool supervisor::is_plain_exit(const rank_end& end) const {
  return end.wait_status && WIFEXITED(*end.wait_status) &&
         block(end.rank).crash.written.load() == 0;
}

}  // namespace sojourn::detail
