// SPDX-License-Identifier: Apache-2.0
// The head of a job on several hosts: starts an agent on each, brings their ranks together, passes
// on what they print, and decides how the job ends. It has no ranks of its own.
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>

#include "hosts/addresses.hpp"
#include "hosts/agent_starter.hpp"
#include "hosts/checkpoint_parts.hpp"
#include "hosts/control_line.hpp"
#include "hosts/deadlock_proof.hpp"
#include "hosts/doorkeeper.hpp"
#include "hosts/gathered.hpp"
#include "hosts/hang_inquiry.hpp"
#include "hosts/job_input.hpp"
#include "hosts/key.hpp"
#include "hosts/plan_of_job.hpp"
#include "hosts/plan_record.hpp"
#include "hosts/starting_line.hpp"
#include "launcher/hangs.hpp"
#include "launcher/launch_here.hpp"
#include "launcher/output.hpp"
#include "launcher/process.hpp"
#include "launcher/standard_outputs.hpp"
#include "observe/hang_report.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/jobs/hosts.hpp"
#include "sojourn/waiting/clock.hpp"
#include "transport/link/carriers.hpp"

namespace sojourn::detail {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using time_point = steady_clock::time_point;

// After so long it is said which hosts are waited for; after so long the job is given up.
constexpr milliseconds slow_after{3000};
constexpr milliseconds start_patience{30'000};
// Agents end their ranks within a second. After so long what is left of them is ended from here.
constexpr milliseconds end_patience{4000};
// From the end of all ranks to that of the commands that have started the agents.
constexpr milliseconds goodbye_patience{2000};
constexpr milliseconds quit_patience{2000};
constexpr milliseconds reader_patience{1000};
// What is still to be written holds the end up: so often it is looked at again.
constexpr milliseconds look_again{200};
// What a starter's descendants write later is not passed on.
constexpr milliseconds pipe_patience{500};

std::string ranks_text(int first, int count) {
  return count == 1 ? "rank " + std::to_string(first)
                    : "ranks " + std::to_string(first) + " to " + std::to_string(first + count - 1);
}

std::vector<int> ranks_of(const std::vector<host_ranks>& hosts) {
  std::vector<int> all;
  for (const host_ranks& h : hosts) all.push_back(h.ranks);
  return all;
}

class head final : private doorkeeper::household {
 public:
  /// `agents`: null where they are started from here.
  head(const hosts_options& options, const process_state& state, const gathering* agents);
  ~head() override;
  head(const head&) = delete;
  head& operator=(const head&) = delete;

  launch_result run();

 private:
  enum class stage { starting, joined, arrived, ended };

  struct host {
    host_ranks wanted;
    int first;
    pid_t pid = 0;  ///< Of the command that starts the agent there; 0: it has ended.
    std::unique_ptr<control_line> line;
    stage is = stage::starting;
    bool has_plan = false;
    std::optional<checkpoint_parts> has = {};  ///< Of the checkpoint to go on from.
    std::string listens_at = {};
    std::vector<rank_introduction> ranks = {};
    std::vector<std::vector<std::uint64_t>> counters = {};
  };
  bool may_come(const hello& said) override;
  void has_come(const hello& said, int socket, const seal_keys& keys) override;
  void has_gone(const hello&) override {}

  void start(host& h);
  void wait_for_events();
  std::optional<time_point> next_deadline() const;
  void take_signals();
  void meet_deadlines();
  void hear(host& h);
  void hear(host& h, const control_line::message& m);
  void reap();
  void send_plan(host& h);
  void restore();
  void begin_ranks();
  void look_for_absent();
  void hear_rest(const host& h, std::uint64_t question,
                 const std::optional<watch_area::rest>& rest);
  void ask_for_waits(const std::string& why, bool proven);
  void look_for_report();
  void report_waits();
  rank_condition condition_unless_told(std::size_t number) const;
  void tell_loss(int rank, const host& of);
  void lose(host& h);
  void on_starter_end(host& h, int wait_status);
  void lose_output(int reason);
  void on_signal(int signal);
  void end_job(int status, int failed_rank, const host* told_by, control kind,
               const record_writer& fields);
  void refuse(const std::string& sentence);
  void kill_starters();
  void say(const std::string& text) { outputs_.say(text); }
  std::size_t number_of(const host& h) const {
    return static_cast<std::size_t>(&h - hosts_.data());
  }
  bool all(bool (*is_so)(const host&)) const {
    return std::all_of(hosts_.begin(), hosts_.end(), is_so);
  }
  bool streams_open() const {
    return std::any_of(streams_.begin(), streams_.end(),
                       [](const output_stream& s) { return s.is_open(); });
  }

  const hosts_options& options_;
  const gathering* agents_;
  told_secret secret_;
  plan_of_job plan_;
  doorkeeper door_;
  int signal_fd_;
  std::vector<host> hosts_;
  standard_outputs outputs_;
  std::vector<output_stream> streams_;
  job_input input_;

  deadlock_proof proof_;
  hang_inquiry hangs_;

  told_of_job told_;
  bool is_ending_ = false;
  bool goodbye_said_ = false;
  int status_ = 0;
  int failed_rank_ = -1;
  time_point begun_ = steady_clock::now();
  time_point all_ended_at_ = begun_;
  std::optional<time_point> slow_at_ = begun_ + slow_after;
  std::optional<time_point> give_up_at_ = begun_ + start_patience;
  std::optional<time_point> kill_at_;
  std::optional<time_point> drop_output_at_;
  std::optional<time_point> close_streams_at_;
  std::optional<time_point> quit_again_until_;
};

head::head(const hosts_options& options, const process_state& state, const gathering* agents)
    : options_(options),
      agents_(agents),
      secret_(agents != nullptr      ? told_secret{agents->secret, ""}
              : options.is_overheard ? draw_secret()
                                     : told_secret{new_secret(), ""}),
      plan_(options),
      door_(secret_.secret, *this, agents != nullptr ? agents->door : listen_anywhere()),
      signal_fd_(signalfd(-1, &state.awaited_signals(), SFD_CLOEXEC | SFD_NONBLOCK)),
      proof_(options.hosts.size()),
      hangs_(ranks_of(options.hosts),
             [this](std::size_t number) { return condition_unless_told(number); }) {
  if (signal_fd_ < 0) throw error(std::string("cannot wait for signals: ") + std::strerror(errno));
  // That they are wrong is said once, and not by each rank.
  (void)carrier_of_job();
  (void)encrypts_job();
  // A terminal that becomes another job's just before it is read refuses, and does not stop us.
  sigset_t input;
  sigemptyset(&input);
  sigaddset(&input, SIGTTIN);
  pthread_sigmask(SIG_BLOCK, &input, nullptr);
  int first = 0;
  for (const host_ranks& wanted : options.hosts) {
    hosts_.push_back({.wanted = wanted, .first = first, .line = nullptr});
    first += wanted.ranks;
  }
}

head::~head() {
  kill_starters();
  for (host& h : hosts_) {
    if (h.pid != 0) waitpid(h.pid, nullptr, 0);
  }
  close(signal_fd_);
}

// --- Starting

/// Where agents come by themselves, that of the first host is started here.
void head::start(host& h) {
  if (agents_ != nullptr && h.first != 0) return;
  const agent_starter started =
      start_agent(agents_ == nullptr ? starting_command(options_, h.wanted) : "");
  h.pid = started.pid;
  const int writer = static_cast<int>(streams_.size());
  streams_.emplace_back(started.output, writer, "", outputs_.output());
  streams_.emplace_back(started.errors, writer + 1, "", outputs_.errors());
  starting_line line{.secret = secret_.secret,
                     .secret_word = secret_.word,
                     .host = static_cast<std::uint32_t>(number_of(h)),
                     .head = addresses_of_host()};
  for (address& a : line.head) a.set_port(door_.port());
  const std::string text = to_text(line);
  // A pipe takes so much at once. Whoever does not read it will be missed.
  (void)!write(started.input, text.data(), text.size());
  // Rank 0 alone reads what follows.
  if (h.first != 0) {
    close(started.input);
  } else {
    input_.pass_to(started.input);
  }
}

bool head::may_come(const hello& said) {
  return said.what_for == purpose::agent && said.from < hosts_.size() &&
         hosts_[said.from].line == nullptr && hosts_[said.from].is == stage::starting &&
         !is_ending_;
}

void head::has_come(const hello& said, int socket, const seal_keys& keys) {
  host& h = hosts_[said.from];
  if (!may_come(said)) {
    close(socket);
    return;
  }
  keep_watch_of(socket);
  h.line = std::make_unique<control_line>(socket, keys);
  h.is = stage::joined;
  if (!all([](const host& one) { return one.is != stage::starting; })) return;
  slow_at_.reset();
  give_up_at_.reset();
}

// --- What agents say

void head::hear(host& h) {
  if (h.line == nullptr) return;
  h.line->move();
  while (auto m = h.line->next()) hear(h, *m);
  if (h.line->has_ended() && h.is != stage::ended) lose(h);
}

void head::hear(host& h, const control_line::message& m) {
  record_reader fields(m.fields);
  switch (m.kind) {
    case control::introduces:
      if (fields.number() != hosts_version())
        refuse("host " + h.wanted.name +
               " has another version of Sojourn: install the same on all");
      return;
    case control::asks_time: {
      const std::uint64_t number = fields.number();
      return h.line->send(control::time, record_writer().number(number).number(now_ns()));
    }
    case control::wants_plan:
      if (is_ending_) return h.line->send(control::stop);
      if (options_.job.restore.empty()) return send_plan(h);
      return h.line->send(control::seeks,
                          record_writer().text(own_folder()).text(options_.job.restore));
    case control::has_parts:
      h.has = read_parts(fields);
      if (!is_ending_ && all([](const host& one) { return one.has.has_value(); })) restore();
      return;
    case control::listens:
      h.listens_at = fields.text();
      return;
    case control::arrived:
      for (int i = 0; i < h.wanted.ranks; ++i) h.ranks.push_back(read_introduction(fields));
      h.is = stage::arrived;
      look_for_absent();
      if (all([](const host& one) { return one.is == stage::arrived; })) begin_ranks();
      return;
    case control::ends_job: {
      const int rank = fields.small_number();
      const int status = fields.small_number();
      if (!is_ending_) h.line->send(control::first);
      return rank < 0 ? end_job(status, rank, &h, control::stop, {})
                      : end_job(status, rank, &h, control::lost,
                                record_writer().number(static_cast<std::uint64_t>(rank)));
    }
    case control::rests: {
      const std::uint64_t question = fields.number();
      return hear_rest(h, question, read_rest(fields));
    }
    case control::moves:
      return hear_rest(h, fields.number(), std::nullopt);
    case control::stands_still:
      if (hangs_.hear_standstill(number_of(h), fields.number() != 0))
        ask_for_waits(standstill_text(options_.job.watchdog_seconds), false);
      return;
    case control::goes_on_again:
      return hangs_.hear_going_on(number_of(h));
    case control::waits: {
      std::vector<rank_view> ranks;
      for (int i = 0; i < h.wanted.ranks; ++i) ranks.push_back(read_rank_view(fields));
      hangs_.hear_waits(number_of(h), std::move(ranks));
      return look_for_report();
    }
    case control::wants_report:
      return ask_for_waits("a report was asked for", false);
    case control::loses:
      return tell_loss(fields.small_number(), h);
    case control::refuses:
      return refuse("host " + h.wanted.name + ": " + fields.text());
    case control::ended: {
      const int status = fields.small_number();
      h.is = stage::ended;
      for (std::uint64_t left = fields.number(); left > 0 && fields.is_sound(); --left) {
        std::vector<std::uint64_t>& of_rank = h.counters.emplace_back();
        for (std::uint64_t n = fields.number(); n > 0 && fields.is_sound(); --n)
          of_rank.push_back(fields.number());
      }
      add(told_, read_told(fields));
      look_for_report();
      if (status != 0) return end_job(status, -1, &h, control::stop, {});
      return look_for_absent();
    }
    default:
      return;
  }
}

void head::send_plan(host& h) {
  h.has_plan = true;
  record_writer text;
  put(text, plan_.for_host({h.first, h.wanted.ranks}));
  h.line->send(control::plan, text);
}

/// All hosts have said what they have of the checkpoint.
void head::restore() {
  std::vector<parts_of_host> hosts;
  for (host& h : hosts_)
    hosts.push_back({h.wanted.name, {h.first, h.wanted.ranks}, std::move(*h.has)});
  try {
    plan_.restore(hosts);
  } catch (const error& e) {
    return refuse(e.what());
  }
  for (host& h : hosts_) send_plan(h);
}

/// Where the ranks of a host have ended without joining the job, and those of another wait for
/// them.
void head::look_for_absent() {
  const auto waits = std::find_if(hosts_.begin(), hosts_.end(), [](const host& h) {
    return h.is == stage::arrived || (h.is == stage::ended && !h.ranks.empty());
  });
  const auto absent = std::find_if(hosts_.begin(), hosts_.end(), [](const host& h) {
    return h.is == stage::ended && h.ranks.empty();
  });
  if (waits == hosts_.end() || absent == hosts_.end() || is_ending_) return;
  say("sojourn run: " + ranks_text(absent->first, absent->wanted.ranks) + " on host " +
      absent->wanted.name + " ended without joining the job, and " +
      ranks_text(waits->first, waits->wanted.ranks) + " on host " + waits->wanted.name +
      " joined it: all ranks of a job call run(), or none\n"
      "sojourn run: the job was ended; its exit status is 1\n");
  end_job(1, absent->first, nullptr, control::stop, {});
}

/// All ranks of all hosts have arrived: each host learns what the others say.
void head::begin_ranks() {
  record_writer ranks;
  for (const host& h : hosts_) {
    for (const rank_introduction& rank : h.ranks) {
      ranks.text(h.listens_at);
      put(ranks, rank);
    }
  }
  for (host& h : hosts_) h.line->send(control::goes_on, ranks);
}

// --- Hangs

void head::hear_rest(const host& h, std::uint64_t question,
                     const std::optional<watch_area::rest>& rest) {
  const deadlock_proof::outcome outcome = proof_.hear(number_of(h), question, rest);
  if (outcome.is_proven)
    ask_for_waits("no fiber of any rank can go on, and no message is on its way", true);
  if (outcome.question == 0 || is_ending_) return;
  for (host& one : hosts_) {
    if (one.line != nullptr)
      one.line->send(control::still_rests, record_writer().number(outcome.question));
  }
}

void head::ask_for_waits(const std::string& why, bool proven) {
  if (is_ending_ || !hangs_.begin(why, proven, steady_clock::now())) return;
  for (host& h : hosts_) {
    // Others have no ranks yet, and wait for something else.
    if (h.line != nullptr && h.has_plan) h.line->send(control::report);
  }
}

rank_condition head::condition_unless_told(std::size_t number) const {
  switch (hosts_[number].is) {
    case stage::arrived:
      return rank_condition::silent;
    case stage::ended:
      return rank_condition::finished;
    default:
      return rank_condition::absent;
  }
}

void head::look_for_report() {
  if (hangs_.is_complete()) report_waits();
}

void head::report_waits() {
  const hang_view view = hangs_.end();
  const hang_report report = explain(view, "sojourn run: ");
  say(report.text);
  if (options_.job.on_hang_report) options_.job.on_hang_report(report.json);
  if (!view.proven || is_ending_) return;
  say("sojourn run: the job was ended; its exit status is " + std::to_string(status_deadlock) +
      "\n");
  end_job(status_deadlock, -1, nullptr, control::stop, {});
}

// --- How the job ends

/// The first reason counts. `fields` are told to all agents but the one that has said so.
void head::end_job(int status, int failed_rank, const host* told_by, control kind,
                   const record_writer& fields) {
  if (std::exchange(is_ending_, true)) return;
  status_ = status;
  failed_rank_ = failed_rank;
  slow_at_.reset();
  give_up_at_.reset();
  for (host& h : hosts_) {
    if (h.line == nullptr) {
      // Its agent has not spoken yet.
      if (h.pid != 0) kill(-h.pid, SIGKILL);
      h.is = stage::ended;
    } else if (&h != told_by) {
      h.line->send(kind, fields);
    }
  }
  const auto grace =
      std::chrono::ceil<milliseconds>(std::chrono::duration<double>(options_.job.grace_seconds));
  kill_at_ = steady_clock::now() + grace + end_patience;
}

void head::refuse(const std::string& sentence) {
  if (!is_ending_) say("sojourn run: " + sentence + "\n");
  end_job(2, -1, nullptr, control::stop, {});
}

/// The connection to an agent has ended before its ranks have.
void head::lose(host& h) {
  h.is = stage::ended;
  look_for_report();
  for (int rank = h.first; rank < h.first + h.wanted.ranks; ++rank) tell_loss(rank, h);
  if (is_ending_) return;
  say("sojourn run: host " + h.wanted.name + " is lost, and with it " +
      ranks_text(h.first, h.wanted.ranks) + ": the connection to its agent has ended (" +
      h.line->why() + ")\nsojourn run: the job was ended; its exit status is 1\n");
  end_job(1, h.first, &h, control::lost,
          record_writer().number(static_cast<std::uint64_t>(h.first)));
}

/// Waits for a rank that is lost fail on all hosts, also when the job is ending because of another.
void head::tell_loss(int rank, const host& of) {
  for (host& other : hosts_) {
    if (&other != &of && other.line != nullptr)
      other.line->send(control::lost, record_writer().number(static_cast<std::uint64_t>(rank)));
  }
}

void head::on_starter_end(host& h, int wait_status) {
  if (h.is != stage::starting || is_ending_) return;
  const std::string how = WIFSIGNALED(wait_status)
                              ? "was ended by signal " + std::to_string(WTERMSIG(wait_status))
                              : "ended with status " + std::to_string(WEXITSTATUS(wait_status));
  h.is = stage::ended;
  if (agents_ != nullptr) return refuse("the agent of host " + h.wanted.name + " " + how);
  refuse("host " + h.wanted.name +
         " cannot be reached, or has no Sojourn: the command that was to "
         "start its agent " +
         how + ": " + starting_command(options_, h.wanted));
}

/// As in a job of one host: whoever has read it may have gone on purpose.
void head::lose_output(int reason) {
  if (is_ending_) return;
  if (reason != EPIPE)
    say(std::string("sojourn run: cannot write the job's output: ") + std::strerror(reason) + "\n");
  end_job(reason == EPIPE ? 128 + SIGPIPE : 1, -1, nullptr, control::stop, {});
}

void head::on_signal(int signal) {
  const record_writer number = record_writer().number(static_cast<std::uint64_t>(signal));
  if (!is_ending_) {
    // A reader that has stopped reading is not waited for.
    drop_output_at_ = steady_clock::now() + end_patience;
    return end_job(128 + signal, -1, nullptr, control::signal, number);
  }
  drop_output_at_ = steady_clock::now() + reader_patience;
  for (host& h : hosts_) {
    if (h.line != nullptr) h.line->send(control::signal, number);
  }
}

void head::kill_starters() {
  for (host& h : hosts_) {
    if (h.pid != 0) kill(-h.pid, SIGKILL);
  }
}

// --- The loop

std::optional<time_point> head::next_deadline() const {
  std::optional<time_point> next;
  auto consider = [&](std::optional<time_point> t) {
    if (t && (!next || *t < *next)) next = t;
  };
  for (const auto& t :
       {slow_at_, give_up_at_, kill_at_, close_streams_at_, hangs_.deadline(), drop_output_at_})
    consider(t);
  consider(door_.next_deadline());
  return next;
}

void head::wait_for_events() {
  std::vector<pollfd> waits;
  waits.push_back({signal_fd_, POLLIN, 0});
  waits.push_back({door_.descriptor(), POLLIN, 0});
  // Input is read when rank 0's host has taken what was read before.
  const bool wants_input = input_.wants_more() && hosts_.front().line != nullptr;
  const bool reads = wants_input && input_.may_read();
  waits.push_back({reads ? STDIN_FILENO : -1, POLLIN, 0});
  waits.push_back({input_.waits_to_write(), POLLOUT, 0});
  outputs_.add_waits(waits);
  for (const host& h : hosts_) {
    const bool is_open = h.line != nullptr && !h.line->has_ended();
    waits.push_back({is_open ? h.line->socket() : -1,
                     static_cast<short>(POLLIN | (is_open && h.line->has_unsent() ? POLLOUT : 0)),
                     0});
  }
  const std::size_t first_stream = waits.size();
  for (const output_stream& s : streams_)
    waits.push_back({s.wants_read() ? s.fd() : -1, POLLIN, 0});

  // Nothing tells when the terminal becomes this job's.
  int timeout_ms = wants_input && !reads ? 1000 : -1;
  if (const auto deadline = next_deadline()) {
    const auto left = std::chrono::ceil<milliseconds>(*deadline - steady_clock::now());
    const int ms = static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
    timeout_ms = timeout_ms < 0 ? ms : std::min(ms, timeout_ms);
  }
  if (poll(waits.data(), waits.size(), timeout_ms) <= 0) return;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (waits[first_stream + i].revents != 0) streams_[i].read_some();
  }
  if (waits[2].revents != 0) input_.read_some();
}

void head::take_signals() {
  signalfd_siginfo info;
  while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    const time_point now = steady_clock::now();
    const bool is_second_quit = signal == SIGQUIT && quit_again_until_ && now < *quit_again_until_;
    if (signal == SIGCHLD) {
      reap();
    } else if (signal == SIGUSR1 || (signal == SIGQUIT && !is_second_quit && !is_ending_)) {
      if (signal == SIGQUIT) quit_again_until_ = now + quit_patience;
      ask_for_waits(signal == SIGQUIT ? "a report was asked for; Ctrl-\\ once more ends the job"
                                      : "a report was asked for",
                    false);
    } else {
      on_signal(signal);
    }
  }
}

void head::reap() {
  for (host& h : hosts_) {
    int wait_status = 0;
    if (h.pid == 0 || waitpid(h.pid, &wait_status, WNOHANG) != h.pid) continue;
    h.pid = 0;
    // What it said last is read before.
    door_.serve();
    hear(h);
    on_starter_end(h, wait_status);
  }
}

void head::meet_deadlines() {
  const time_point now = steady_clock::now();
  auto due = [&](std::optional<time_point>& t) {
    if (!t || now < *t) return false;
    t.reset();
    return true;
  };
  auto waited_for = [this] {
    std::string names;
    for (const host& h : hosts_) {
      if (h.is == stage::starting) names += (names.empty() ? "" : ", ") + h.wanted.name;
    }
    return names;
  };
  if (due(slow_at_))
    say("sojourn run: the agents of these hosts have not spoken yet: " + waited_for() + "\n");
  if (hangs_.deadline() && now >= *hangs_.deadline()) report_waits();
  if (due(give_up_at_)) {
    refuse("the job was given up after " + std::to_string(start_patience.count() / 1000) +
           " s, in which the agents of these hosts have not spoken: " + waited_for());
  }
  if (due(drop_output_at_)) outputs_.abandon_pending();
  // What a starter still has to pass on would be lost with it.
  if (outputs_.has_pending() && kill_at_ && now >= *kill_at_) kill_at_ = now + look_again;
  if (outputs_.has_pending() && close_streams_at_ && now >= *close_streams_at_)
    close_streams_at_ = now + look_again;
  if (due(kill_at_)) {
    for (host& h : hosts_) {
      h.line.reset();
      h.is = stage::ended;
    }
    kill_starters();
  }
  if (due(close_streams_at_)) {
    for (output_stream& s : streams_) s.finish();
  }
}

launch_result head::run() {
  for (host& h : hosts_) start(h);
  auto starters_gone = [](const host& h) { return h.pid == 0; };
  for (;;) {
    wait_for_events();
    take_signals();
    door_.serve();
    for (host& h : hosts_) hear(h);
    input_.write_some();
    outputs_.write_some();
    if (const int reason = outputs_.output().failure(); reason != 0) lose_output(reason);
    meet_deadlines();
    if (!goodbye_said_ && all([](const host& h) { return h.is == stage::ended; })) {
      goodbye_said_ = true;
      if (const std::string text = text_of_unmatched(told_.settings); status_ == 0 && !text.empty())
        say(text);
      all_ended_at_ = steady_clock::now();
      kill_at_ = all_ended_at_ + goodbye_patience;
      for (host& h : hosts_) {
        if (h.line != nullptr) h.line->send(control::goodbye);
      }
    }
    if (goodbye_said_ && !close_streams_at_ && all(starters_gone))
      close_streams_at_ = steady_clock::now() + pipe_patience;
    if (goodbye_said_ && all(starters_gone) && !streams_open() && !outputs_.has_pending()) break;
  }
  launch_result result{status_,
                       failed_rank_,
                       std::chrono::duration<double>(all_ended_at_ - begun_).count(),
                       {},
                       figures_of(told_.forks),
                       figures_of(told_.calls)};
  for (host& h : hosts_) {
    h.counters.resize(static_cast<std::size_t>(h.wanted.ranks));
    for (auto& of_rank : h.counters) result.counters.push_back(std::move(of_rank));
  }
  return result;
}

void check(const hosts_options& options) {
  if (options.hosts.empty()) throw error("no host was given");
  const int sum = std::accumulate(options.hosts.begin(), options.hosts.end(), 0,
                                  [](int n, const host_ranks& h) { return n + h.ranks; });
  if (sum != options.job.rank_count || sum > rank_count_max) {
    throw error("the hosts have " + std::to_string(sum) + " ranks in all, and the job has " +
                std::to_string(options.job.rank_count) + "; at most " +
                std::to_string(rank_count_max) + " are possible");
  }
}

}  // namespace

}  // namespace sojourn::detail

namespace sojourn {

std::string describe_hosts(const hosts_options& options) {
  std::string text;
  int first = 0;
  for (const host_ranks& host : options.hosts) {
    text += host.name + ": " + detail::ranks_text(first, host.ranks) +
            ", by: " + detail::starting_command(options, host) + '\n';
    first += host.ranks;
  }
  return text;
}

namespace {

launch_result run_head(const hosts_options& options, const detail::gathering* agents) {
  detail::check(options);
  const detail::process_state state(detail::open_files_needed(0) + 16 * options.hosts.size() + 320);
  return detail::head(options, state, agents).run();
}

}  // namespace

launch_result launch_on_hosts(const hosts_options& options) { return run_head(options, nullptr); }

launch_result detail::launch_with(const gathering& agents, const hosts_options& options) {
  return run_head(options, &agents);
}

}  // namespace sojourn
