// SPDX-License-Identifier: Apache-2.0
// The agent of one host: joins the head of the job, starts the host's ranks and watches them as the
// launcher of a job of one host does, and stands between them and the other hosts.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/kernel_files.hpp"
#include "base/printable.hpp"
#include "hosts/addresses.hpp"
#include "hosts/checkpoint_parts.hpp"
#include "hosts/control_line.hpp"
#include "hosts/gathered.hpp"
#include "hosts/handshake.hpp"
#include "hosts/plan_record.hpp"
#include "hosts/starting_line.hpp"
#include "hosts/switchboard.hpp"
#include "launcher/launch_here.hpp"
#include "launcher/other_hosts.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/jobs/hosts.hpp"
#include "transport/link/carriers.hpp"

namespace sojourn::detail {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long the head is tried at all its addresses; those of its networks have a start over those
// that mean this host itself.
constexpr milliseconds head_patience{10'000};
constexpr milliseconds networks_first{300};
constexpr milliseconds attempt_patience{1000};
// The head's verdict on a connection between ranks that broke comes within this time, if it has
// one.
constexpr milliseconds verdict_patience{2500};
// How often the head's clock is asked: the answer that took least is the best.
constexpr int times_asked = 8;

// How often it is looked at whether all ranks of this host sleep.
constexpr milliseconds looks_at_rest{200};

struct proven_connection {
  int socket = -1;
  seal_keys keys = {};
};

/// Tries all addresses of the head at once, and says who it is at one of them at a time: the head
/// takes the first connection over which it hears that. Throws sojourn::error.
proven_connection connect_to_head(const starting_line& start) {
  struct attempt {
    const address* to;
    int socket;
    bool is_connected = false;
    asking proves;
    std::optional<steady_clock::time_point> spoke = std::nullopt;
  };
  std::vector<attempt> attempts;
  const auto begun = steady_clock::now();
  std::string why = "it has told no address of its own";
  bool loopback_tried = false;
  bool met_stranger = false;
  bool may_be_busy = false;
  auto begin = [&](bool loopback) {
    for (const address& to : start.head) {
      if (to.is_loopback() != loopback) continue;
      const int s = begin_to_connect(to);
      if (s < 0) {
        why = to.text() + ": " + std::strerror(errno);
        continue;
      }
      attempts.push_back({&to, s, false, asking(start.secret, purpose::agent, start.host, 0)});
    }
  };
  begin(false);
  proven_connection connected;
  while (connected.socket < 0 && steady_clock::now() - begun < head_patience) {
    if (!loopback_tried && (attempts.empty() || steady_clock::now() - begun >= networks_first)) {
      loopback_tried = true;
      begin(true);
    }
    if (attempts.empty()) {
      // The head may have had too many callers at once.
      if (met_stranger && !may_be_busy) break;
      met_stranger = may_be_busy = false;
      (void)poll(nullptr, 0, 50);
      begin(false);
      begin(true);
    }
    std::vector<pollfd> waits;
    for (const attempt& a : attempts)
      waits.push_back({a.socket, static_cast<short>(a.is_connected ? POLLIN : POLLOUT), 0});
    (void)poll(waits.data(), waits.size(), 50);
    for (std::size_t i = 0; i < waits.size() && connected.socket < 0; ++i) {
      if (attempts[i].socket < 0 || (waits[i].revents == 0 && !attempts[i].is_connected)) continue;
      attempt& a = attempts[i];
      const int reason = a.is_connected ? 0 : connect_failure(a.socket);
      a.is_connected = true;
      const attempt* const first = &*std::find_if(
          attempts.begin(), attempts.end(), [](const attempt& one) { return one.is_connected; });
      progress how = reason != 0   ? progress::refused
                     : first == &a ? a.proves.go_on(a.socket)
                                   : progress::waits;
      if (first == &a && !a.spoke) a.spoke = steady_clock::now();
      // Whoever listens there may be another.
      if (how == progress::waits && a.spoke && steady_clock::now() - *a.spoke > attempt_patience)
        how = progress::refused;
      if (how == progress::done) {
        connected = {std::exchange(a.socket, -1), a.proves.keys()};
      } else if (how == progress::refused) {
        (a.proves.met_stranger() ? met_stranger : may_be_busy) |= reason == 0;
        if (!met_stranger || reason == 0)
          why = a.to->text() + ": " + (reason != 0 ? std::strerror(reason) : a.proves.why());
        close(std::exchange(a.socket, -1));
      }
    }
    std::erase_if(attempts, [](const attempt& a) { return a.socket < 0; });
  }
  for (const attempt& a : attempts) close(a.socket);
  if (connected.socket < 0) throw error("the head of the job cannot be reached (" + why + ")");
  keep_watch_of(connected.socket);
  return connected;
}

/// Waits for the next message of the head.
control_line::message wait_for(control_line& line) {
  for (;;) {
    if (auto m = line.next()) return *m;
    if (line.has_ended())
      throw error("the connection to the head of the job has ended: " + line.why());
    pollfd wait{line.socket(), static_cast<short>(POLLIN | (line.has_unsent() ? POLLOUT : 0)), 0};
    (void)poll(&wait, 1, -1);
    line.move();
  }
}

/// How far the head's clock is ahead of this host's.
std::uint64_t clock_of_head(control_line& line) {
  std::uint64_t ahead = 0;
  std::uint64_t least = never_ns;
  for (int i = 0; i < times_asked; ++i) {
    const std::uint64_t sent = now_ns();
    line.send(control::asks_time, record_writer().number(sent));
    const control_line::message m = wait_for(line);
    const std::uint64_t came = now_ns();
    record_reader answer(m.fields);
    if (m.kind != control::time || answer.number() != sent)
      throw error("the head of the job does not say what time it is");
    if (came - sent >= least) continue;
    least = came - sent;
    ahead = answer.number() + least / 2 - came;
  }
  // Clocks that may be the same are taken for that: those of containers of one machine are.
  const auto off = static_cast<std::int64_t>(ahead);
  return static_cast<std::uint64_t>(off < 0 ? -off : off) <= least ? 0 : ahead;
}

class agent final : public other_hosts {
 public:
  agent(control_line& line, const job_secret& secret, const host_plan& plan,
        std::uint64_t clock_ahead)
      : line_(line),
        plan_(plan),
        clock_ahead_(clock_ahead),
        board_(secret, plan.here, plan.job.rank_count, encrypts_job()) {
    for (int i = 0; i < plan.here.count; ++i) {
      bells_.push_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
      if (bells_.back() < 0)
        throw error(std::string("an eventfd cannot be made: ") + std::strerror(errno));
    }
    address listens = address_for_others(line.socket());
    listens.set_port(board_.port());
    line.send(control::listens, record_writer().text(listens.text()));
  }
  ~agent() override {
    for (int bell : bells_) close(bell);
  }
  agent(const agent&) = delete;
  agent& operator=(const agent&) = delete;

  rlim_t open_files_needed() const override {
    return switchboard::files_needed(plan_.here, plan_.job.rank_count) + bells_.size();
  }

  void prepare(job_segment& job) override {
    job_ = &job;
    job.secret = plan_.canary;
    job.clock_ahead_ns = clock_ahead_;
    if (const std::string& path = plan_.job.restore; !path.empty())
      go_on_from(job, path, plan_.restored, clock_ahead_ + plan_.restored_ahead_ns);
    for (int i = 0; i < plan_.here.count; ++i) {
      rank_block& block = job.ranks[plan_.here.first + i];
      block.bell = bells_[static_cast<std::size_t>(i)];
      block.channel = board_.channel_of(plan_.here.first + i);
    }
  }

  void add_waits(std::vector<pollfd>& waits) override {
    waits.push_back({line_.has_ended() ? -1 : line_.socket(),
                     static_cast<short>(POLLIN | (line_.has_unsent() ? POLLOUT : 0)), 0});
    waits.push_back({board_.descriptor(), POLLIN, 0});
  }

  std::optional<clock::time_point> next_deadline() const override {
    std::optional<clock::time_point> next = board_.next_deadline();
    if (arrival_told_ && (!next || look_at_rest_at_ < *next)) next = look_at_rest_at_;
    for (const switchboard::trouble& t : troubles_) {
      const auto due = t.since + verdict_patience;
      if (!next || due < *next) next = due;
    }
    return next;
  }

  void look(host_supervision& here) override {
    // All ranks have been started, with copies of their own.
    if (std::exchange(ends_open_, false)) board_.close_ends_of_ranks();
    tell_of_arrival();
    if (!line_.has_ended()) {
      line_.move();
      while (auto m = line_.next()) hear(*m, here);
      if (line_.has_ended() && !is_over_)
        here.end_at_once(
            "host " + host_name() +
                " has lost the head of the job, so its ranks are ended: the connection "
                "has ended (" +
                line_.why() + ")",
            1);
    }
    board_.serve();
    if (arrival_told_ && clock::now() >= look_at_rest_at_) {
      look_at_rest_at_ = clock::now() + looks_at_rest;
      tell_standstill(here.standstill());
      tell_rest(0);
    }
    for (switchboard::trouble& t : board_.take_troubles()) troubles_.push_back(std::move(t));
    tell_of_troubles(here);
  }

  std::optional<bool> was_first() const override {
    if (line_.has_ended()) return was_first_.value_or(true);
    return was_first_;
  }

  void add_told(const told_of_job& told) override { told_ = told; }
  /// What the ranks of this host have told, once they have ended.
  const told_of_job& told() const { return told_; }

  void tell_loss(int rank) override {
    line_.send(control::loses, record_writer().number(static_cast<std::uint64_t>(rank)));
  }

  void tell_waits(const hang_view& view) override {
    if (!std::exchange(report_asked_, false)) return line_.send(control::wants_report);
    record_writer ranks;
    for (int i = 0; i < plan_.here.count; ++i)
      put(ranks, view.ranks[static_cast<std::size_t>(plan_.here.first + i)]);
    line_.send(control::waits, ranks);
  }

  /// What this host's ranks have sent may still be on its way, over connections that are open here;
  /// and ranks of other hosts may still call them.
  void wait_for_goodbye() {
    do {
      while (const auto m = line_.next()) {
        if (m->kind == control::goodbye) return;
      }
      std::vector<pollfd> waits;
      add_waits(waits);
      (void)poll(waits.data(), waits.size(), 1000);
      board_.serve();
    } while (line_.move());
  }

  void ends_job(int rank, int status) override {
    if (std::exchange(is_over_, true)) return;
    line_.send(control::ends_job, record_writer()
                                      .number(static_cast<std::uint64_t>(rank))
                                      .number(static_cast<std::uint64_t>(status)));
  }

 private:
  void hear(const control_line::message& m, host_supervision& here) {
    record_reader fields(m.fields);
    switch (m.kind) {
      case control::goes_on:
        return go_on(fields);
      case control::first:
        was_first_ = true;
        return;
      case control::lost:
        is_ended_elsewhere();
        return here.lose_elsewhere(fields.small_number());
      case control::signal:
        is_ended_elsewhere();
        return here.end_by_signal(fields.small_number());
      case control::stop:
        is_ended_elsewhere();
        return here.end_at_once("", 1);
      case control::still_rests:
        return tell_rest(fields.number());
      case control::report:
        report_asked_ = true;
        return here.ask_for_waits();
      default:
        return;
    }
  }

  void is_ended_elsewhere() {
    is_over_ = true;
    if (!was_first_) was_first_ = false;
  }

  void tell_of_arrival() {
    if (arrival_told_ || job_->start_failed.load() != 0 ||
        job_->start_arrived.load() < job_->ranks_here)
      return;
    arrival_told_ = true;
    record_writer ranks;
    for (int i = 0; i < plan_.here.count; ++i) put(ranks, job_->ranks[plan_.here.first + i]);
    line_.send(control::arrived, ranks);
  }

  /// Tells that this host's ranks all sleep: once, when they have slept from one look to the next,
  /// or, as the answer to a `question` of the head, whether they do. The head proves by it that a
  /// job hangs.
  void tell_rest(std::uint64_t question) {
    const auto now = job_->watch().at_rest(plan_.here.first, plan_.here.count);
    const bool is_new = now && now == rested_ && now != told_rest_;
    rested_ = now;
    if (question == 0 && !is_new) return;
    record_writer rest;
    rest.number(question);
    if (now) put(rest, *now);
    if (question == 0) told_rest_ = now;
    line_.send(now ? control::rests : control::moves, rest);
  }

  /// Each time that it begins or ends.
  void tell_standstill(std::optional<bool> some_wait) {
    if (some_wait.has_value() == told_standstill_.has_value()) return;
    told_standstill_ = some_wait;
    if (some_wait) {
      line_.send(control::stands_still, record_writer().number(*some_wait));
    } else {
      line_.send(control::goes_on_again);
    }
  }

  /// All ranks of the job have arrived: those of this host go on.
  void go_on(record_reader& fields) {
    std::vector<address> where;
    for (int r = 0; r < plan_.job.rank_count; ++r) {
      const std::optional<address> listens = address_from_text(fields.text());
      where.push_back(listens.value_or(address{}));
      const rank_introduction says = read_introduction(fields);
      if (!job_->is_here(r)) static_cast<rank_introduction&>(job_->ranks[r]) = says;
    }
    board_.learn(std::move(where));
    job_->start_arrived.fetch_add(job_->rank_count - job_->ranks_here);
    syscall(SYS_futex, &job_->start_arrived, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  /// A host that has gone is told of by the head. Where that does not come, only the way between
  /// two hosts is at fault, and the job cannot go on.
  void tell_of_troubles(host_supervision& here) {
    const auto now = clock::now();
    std::erase_if(troubles_, [&](const switchboard::trouble& t) {
      if (is_over_ || job_->ranks[t.there].lost.load() != 0) return true;
      if (now < t.since + verdict_patience) return false;
      here.end_at_once(
          format(t.is_broken
                     ? "the connection between rank %d on host %s and rank %d is broken (%s)"
                     : "rank %d on host %s cannot be connected to rank %d (%s): its host "
                       "must be reachable from there, at any port",
                 t.here, host_name().c_str(), t.there, t.why.c_str()),
          1);
      return true;
    });
  }

  control_line& line_;
  const host_plan& plan_;
  std::uint64_t clock_ahead_;
  switchboard board_;
  std::vector<int> bells_;
  job_segment* job_ = nullptr;
  bool ends_open_ = true;
  bool arrival_told_ = false;
  std::optional<bool> was_first_;
  clock::time_point look_at_rest_at_ = clock::now();
  bool report_asked_ = false;  ///< By the head.
  std::optional<bool> told_standstill_;
  std::optional<watch_area::rest> rested_;     ///< At the last look.
  std::optional<watch_area::rest> told_rest_;  ///< Of which the head knows.
  told_of_job told_;
  bool is_over_ = false;  ///< The job has been ended, here or elsewhere.
  std::vector<switchboard::trouble> troubles_;
};

/// A rank may have a connection to each rank of the other hosts, and so may this process for each
/// rank of this one.
void allow_many_files() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

void enter(const host_plan& plan) {
  for (const auto& [name, value] : plan.settings) setenv(name.c_str(), value.c_str(), 1);
  if (chdir(plan.folder.c_str()) != 0) {
    throw error("the folder " + plan.folder + " cannot be entered (" + std::strerror(errno) +
                "): a job runs in the same folder on all hosts");
  }
}

}  // namespace

}  // namespace sojourn::detail

namespace sojourn {

namespace detail {

int run_agent(const starting_line& start) {
  allow_many_files();
  const proven_connection proven = connect_to_head(start);
  control_line line(proven.socket, proven.keys);
  line.send(control::introduces, record_writer().number(hosts_version()).text(host_name()));
  launch_result result;
  host_plan plan;
  std::optional<agent> self;
  try {
    const std::uint64_t ahead = clock_of_head(line);
    line.send(control::wants_plan);
    control_line::message m = wait_for(line);
    if (m.kind == control::seeks) {
      record_reader where(m.fields);
      const std::string folder = where.text();
      record_writer parts;
      put(parts, parts_here(folder, where.text()));
      line.send(control::has_parts, parts);
      m = wait_for(line);
    }
    if (m.kind != control::plan) return 1;  // the job is over
    record_reader fields(m.fields);
    plan = read_host_plan(fields);
    if (!fields.is_sound()) throw error("the head of the job speaks another version");
    enter(plan);
    const launch_plan here = plan_on_host(plan.job, plan.here);
    self.emplace(line, start.secret, plan, ahead);
    result = launch_here(here, &*self);
  } catch (const std::exception& e) {
    if (line.has_ended()) throw;
    line.send(control::refuses, record_writer().text(e.what()));
    result.status = 2;
  }
  record_writer ended;
  ended.number(static_cast<std::uint64_t>(result.status)).number(result.counters.size());
  for (const auto& of_rank : result.counters) {
    ended.number(of_rank.size());
    for (std::uint64_t count : of_rank) ended.number(count);
  }
  put(ended, self ? self->told() : told_of_job{});
  line.send(control::ended, ended);
  if (self) {
    self->wait_for_goodbye();
  } else {
    try {
      while (wait_for(line).kind != control::goodbye) {
      }
    } catch (const error&) {  // the head has gone
    }
  }
  return result.status;
}

}  // namespace detail

int run_agent() { return detail::run_agent(detail::read_starting_line(STDIN_FILENO)); }

}  // namespace sojourn
