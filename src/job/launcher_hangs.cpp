// SPDX-License-Identifier: Apache-2.0
#include "job/launcher_hangs.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "job/kernel_files.hpp"
#include "observe/wait_circle.hpp"

namespace sojourn::detail {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Ranks that sleep answer at once; those that run get this long to come to their dispatcher, …
constexpr milliseconds answer_patience{50};
// … and this long more, once interrupted, to do better than a stack.
constexpr milliseconds stack_patience{100};
constexpr milliseconds patience{2000};
constexpr milliseconds brief_patience{300};
// One that slept answers as soon as it has a core. Where cores are rare and it has much to do, it
// may come to no sleep, around which it answers, for long.
constexpr milliseconds wake_patience{150};
constexpr milliseconds interrupt_again{20};
constexpr milliseconds look_again{2};
// Turns given a second by a fiber that polls. A loop that computes gives some, too.
constexpr double polling = 1000;
// Such a loop may read a few words each time.
constexpr std::uint64_t read_a_turn = 64;
// A rank that goes on is told of when it has not come to its scheduler for so many periods of the
// watchdog: a minute, by default.
constexpr int periods_of_computing = 6;
constexpr nanoseconds sample_least = milliseconds(50);
constexpr nanoseconds sample_most = milliseconds(1000);

/// What moves when a rank does something. It sleeps and wakes for reports, too, and what it resumes
/// may only poll. What it reads and answers is counted apart: another rank may only poll there.
std::uint64_t counted(const counts_page& page, std::uint64_t& reads) {
  counters c = page.now();
  reads = c.bulk_messages + c.bulk_bytes + c.bulk_copies + c.replies_sent + c.reply_bytes;
  c.bulk_messages = c.bulk_bytes = c.bulk_copies = c.replies_sent = c.reply_bytes = 0;
  c.sleeps = c.wakeups_sent = c.switches = c.images_in = c.images_out = 0;
  auto values = c.values();
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0}) + page.methods;
}

/// Never more than there were: a fiber that gives its turn is counted before it is resumed, and
/// yields are read last.
std::int64_t resumed(const counts_page& page) {
  std::uint64_t switches = __atomic_load_n(&page.switches, __ATOMIC_ACQUIRE);
  return static_cast<std::int64_t>(switches - __atomic_load_n(&page.yields, __ATOMIC_RELAXED));
}

std::string thread_file(std::int32_t process, std::int32_t thread, const char* name) {
  return "/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/" + name;
}

/// As the kernel sees it: 'R' for one that runs; '?' for none.
char state_of(std::int32_t process, std::int32_t thread) {
  std::string stat = read_line(thread_file(process, thread, "stat"));
  // The name before it may hold anything.
  std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return '?';
  return stat[name_end + 2];
}

/// True when the kernel has the thread sleep.
bool sleeps_in_kernel(std::int32_t process, std::int32_t thread) {
  char state = state_of(process, thread);
  return state == 'S' || state == 'D';
}
bool is_stopped(char state) { return state == 'T' || state == 't'; }

/// True when the system call that the thread sleeps in goes on behind a signal handler as if
/// nothing had been (signal(7), SA_RESTART). Not all that do are listed, but what programs block
/// in.
bool restarts_when_interrupted(std::int32_t process, std::int32_t thread) {
  std::string text = read_line(thread_file(process, thread, "syscall"));
  std::optional<long> number = parse_number(text.substr(0, text.find(' ')));
  return number && (*number == SYS_futex || *number == SYS_read || *number == SYS_wait4);
}

}  // namespace

hang_watcher::hang_watcher(job_segment& job, int bell, double watchdog_seconds)
    : job_(job),
      area_(job.watch()),
      bell_(bell),
      watchdog_(std::chrono::duration_cast<nanoseconds>(duration<double>(watchdog_seconds))),
      progress_(job.rank_count),
      progress_at_(clock::now()),
      sampled_at_(progress_at_),
      was_asleep_(job.rank_count),
      in_system_call_(job.rank_count) {
  for (progress& p : progress_) p.since = p.runs_since = progress_at_;
  if (watchdog_ > nanoseconds(0)) {
    sample_at_ = progress_at_;
    circle_at_ = progress_at_ + watchdog_;
  }
}

std::optional<hang_watcher::time> hang_watcher::next_deadline() const {
  std::optional<time> next = sample_at_;
  if (circle_at_) next = std::min(*next, *circle_at_);
  if (!request_) return next;
  time again = clock::now() + look_again;
  return next ? std::min(*next, again) : again;
}

void hang_watcher::ask(const std::string& why) { start({why, false, true, clock::now()}); }

void hang_watcher::start(request r) {
  if (request_ && request_->brief) request_.reset();
  if (request_) {
    // The answers on their way serve for this, too.
    request_->by_hand |= r.by_hand;
    if (std::exchange(request_->circle_only, false)) request_->why = r.why;
    if (r.proven) {
      request_->why = r.why;
      request_->proven = true;
    }
    return;
  }
  request_ = std::move(r);
  ++number_;
  std::fill(in_system_call_.begin(), in_system_call_.end(), false);
  for (int rank = 0; rank < area_.ranks(); ++rank) {
    was_asleep_[static_cast<std::size_t>(rank)] =
        job_.ranks[rank].state.load() == rank_state::attached &&
        area_.ask(rank, number_, request_->brief);
  }
}

void hang_watcher::hear_bell() {
  std::uint64_t rings;
  if (read(bell_, &rings, sizeof rings) != sizeof rings) return;
  if (area_.nothing_can_happen()) {
    start({"no fiber of any rank can go on, and no message is on its way", true, false,
           clock::now()});
  }
  std::uint32_t asked = area_.all().asked.load();
  if (std::exchange(asked_by_ranks_, asked) != asked) ask("a report was asked for");
}

void hang_watcher::sample(time now) {
  sample_at_ = now + std::clamp(watchdog_ / 8, sample_least, sample_most);
  bool some_wait = false;
  bool some_sleep = false;
  bool some_poll = false;
  std::uint64_t turns = 0;
  std::uint64_t bytes_read = 0;
  std::vector<bool> did(progress_.size());  // something
  std::vector<bool> read(progress_.size());
  double passed = duration<double>(now - std::exchange(sampled_at_, now)).count();
  for (int rank = 0; rank < area_.ranks(); ++rank) {
    auto r = static_cast<std::size_t>(rank);
    progress& p = progress_[r];
    const counts_page& page = job_.counts_of(rank);
    std::uint64_t yields = __atomic_load_n(&page.yields, __ATOMIC_RELAXED);
    std::uint64_t yielded = yields - std::exchange(p.yields, yields);
    bool polls = static_cast<double>(yielded) > polling * passed;
    some_poll = some_poll || polls;
    turns += yielded;
    some_wait = some_wait || area_.is_asleep(rank) || polls;
    some_sleep = some_sleep || area_.sleeps_for_a_time(rank) ||
                 (now - p.runs_since < watchdog_ && has_sleeper(rank, now));
    std::uint64_t moved = __atomic_load_n(&page.bulk_bytes, __ATOMIC_RELAXED);
    bytes_read += moved - std::exchange(p.bytes_read, moved);
    // One that joins does something, too.
    std::uint64_t reads;
    std::uint64_t count =
        counted(page, reads) + static_cast<std::uint64_t>(job_.ranks[rank].state.load());
    std::int64_t went_on = resumed(page);
    did[r] = count != std::exchange(p.counted, count) || went_on > p.resumed;
    read[r] = reads != std::exchange(p.reads, reads);
    p.resumed = std::max(p.resumed, went_on);
    if (did[r] || read[r] || yielded != 0 || area_.is_asleep(rank)) p.runs_since = now;
  }
  // A loop that asks again and again reads what it asks for, and another rank answers it.
  bool only_polls = some_poll && bytes_read <= read_a_turn * turns;
  for (std::size_t r = 0; r < progress_.size(); ++r) {
    if (!did[r] && (!read[r] || only_polls)) continue;
    progress_[r].since = progress_at_ = now;
    reported_ = false;
  }
  look_at_ranks(now, some_wait);
  // What the others may wait for. Counted from its end: one that has just woken has done nothing
  // yet.
  if (some_sleep) progress_at_ = now;
  nanoseconds quiet = now - progress_at_;
  if (quiet < watchdog_ / 2 || reported_) return;
  // Also in a lock, or for what another process has to say.
  for (std::size_t rank = 0; rank < progress_.size(); ++rank) {
    some_wait = sleeps_on(rank) || some_wait;
  }
  // When nobody waits the ranks compute, each for itself.
  if (quiet < watchdog_ || !some_wait) return;
  reported_ = true;
  // Those are told of with the others.
  for (progress& p : progress_) p.is_told = p.is_told || now - p.runs_since >= watchdog_ / 2;
  double seconds = duration<double>(quiet).count();
  start({format(seconds < 1 ? "no rank has sent a message or run a fiber for %.2f s"
                            : "no rank has sent a message or run a fiber for %.0f s",
                seconds < 1 ? seconds : std::floor(seconds)),
         false, false, now});
}

/// True when a fiber there sleeps on, as far as was told when the rank last fell asleep: it may
/// only have woken to tell of its waits.
bool hang_watcher::has_sleeper(int rank, time now) const {
  std::uint64_t wakes_at = area_.of(rank).wakes_at_ns.load();
  return wakes_at > job_.clock_ahead_ns &&
         nanoseconds(wakes_at - job_.clock_ahead_ns) > now.time_since_epoch();
}

/// Ranks that the others wait for, though some of those go on: each is told of once.
void hang_watcher::look_at_ranks(time now, bool some_wait) {
  for (std::size_t rank = 0; rank < progress_.size(); ++rank) {
    progress& p = progress_[rank];
    if (p.is_told || job_.ranks[rank].state.load() != rank_state::attached) continue;
    if (now - p.since < watchdog_) {
      p.was_stopped = false;
      continue;
    }
    // A debugger, or who stops a rank for a moment, is no hang.
    bool stopped = is_stopped(process_state(rank));
    if (stopped && std::exchange(p.was_stopped, stopped)) {
      p.is_told = true;
      start({format("rank %zu is stopped", rank), false, false, now});
    }
    p.was_stopped = stopped;
    nanoseconds runs = now - p.runs_since;
    if (stopped || !some_wait || runs < periods_of_computing * watchdog_) continue;
    p.is_told = true;
    start({format("rank %zu has not come to its scheduler for %.0f s, and others wait", rank,
                  std::floor(duration<double>(runs).count())),
           false, false, now});
  }
}

char hang_watcher::process_state(std::size_t rank) const {
  return state_of(job_.ranks[rank].pid.load(), area_.of(static_cast<int>(rank)).thread.load());
}

/// Somebody there has waited for a fiber, without a time limit, as long as the watchdog's period.
bool hang_watcher::someone_waits_long(const hang_view& view) const {
  for (const rank_view& rank : view.ranks) {
    for (std::uint32_t i = 0; i < rank.report.fiber_count; ++i) {
      const fiber_record& f = rank.report.fibers[i];
      bool for_a_fiber = f.kind == wait_kind::call || f.kind == wait_kind::result ||
                         f.kind == wait_kind::mutex || f.kind == wait_kind::finish;
      if (for_a_fiber && f.left_ns == fiber_record::no_limit &&
          nanoseconds(f.waited_ns) >= watchdog_ / 2) {
        return true;
      }
    }
  }
  return false;
}

/// Fibers that wait for each other are a hang, whatever else runs. They are looked for in what
/// ranks tell without being disturbed, as far as that goes; one that is seen is proven, and told,
/// by a second look.
void hang_watcher::look_for_circle(const std::vector<bool>& running, time now) {
  bool answered = true;
  for (std::size_t rank = 0; rank < running.size(); ++rank) {
    answered = answered && (!takes_part(rank, running) || has_answered(rank) || has_stack(rank));
  }
  nanoseconds waited = now - request_->at;
  if (!answered && waited < answer_patience) return;
  hang_view view = collect(running, now);
  if (!answered && waited < brief_patience) {
    bool some_wait_long = someone_waits_long(view);
    bool some_come = false;
    bool due = now - request_->interrupted_at >= interrupt_again;
    for (std::size_t rank = 0; rank < running.size(); ++rank) {
      if (!takes_part(rank, running) || has_answered(rank) || has_stack(rank)) continue;
      // One that others wait for, or that never sleeps because a fiber polls.
      if (!some_wait_long && now - progress_[rank].runs_since > sample_most) continue;
      some_come = true;
      if (due && !is_about_to_answer(rank, waited)) interrupt(rank);
    }
    if (due) request_->interrupted_at = now;
    if (some_come) return;
  }
  request_.reset();
  std::vector<told_fiber> circle = circle_of_waits(view, view);
  if (circle.empty() || is_told(view, circle)) return;
  waited_ = std::move(view);
  request full{"fibers wait for each other in a circle, whatever else runs", false, false, now};
  full.circle_only = true;
  start(full);
}

bool hang_watcher::is_told(const hang_view& view, const std::vector<told_fiber>& circle) const {
  return std::any_of(circle.begin(), circle.end(), [&](const told_fiber& told) {
    const rank_report& report = view.ranks[static_cast<std::size_t>(told.rank)].report;
    return told_waits_.contains({told.rank, report.fibers[told.number].since});
  });
}

/// True when the rank sleeps in the kernel, and has not woken since this was last asked.
bool hang_watcher::sleeps_on(std::size_t rank) {
  std::int32_t process = job_.ranks[rank].pid.load();
  std::int32_t thread = area_.of(static_cast<int>(rank)).thread.load();
  std::string sleep;
  if (job_.ranks[rank].state.load() == rank_state::attached && sleeps_in_kernel(process, thread)) {
    sleep = read_field(thread_file(process, thread, "status"), "voluntary_ctxt_switches");
  }
  bool same = !sleep.empty() && sleep == progress_[rank].sleep;
  progress_[rank].sleep = std::move(sleep);
  return same;
}

bool hang_watcher::takes_part(std::size_t rank, const std::vector<bool>& running) const {
  return running[rank] && job_.ranks[rank].state.load() == rank_state::attached;
}

bool hang_watcher::has_answered(std::size_t rank) const {
  return area_.of(static_cast<int>(rank)).report_given.load(std::memory_order_acquire) == number_;
}

bool hang_watcher::has_stack(std::size_t rank) const {
  return area_.of(static_cast<int>(rank)).stack_given.load(std::memory_order_acquire) == number_;
}

bool hang_watcher::is_about_to_answer(std::size_t rank, nanoseconds waited) const {
  return was_asleep_[rank] && waited < wake_patience;
}

void hang_watcher::interrupt(std::size_t rank) {
  std::int32_t process = job_.ranks[rank].pid.load();
  std::int32_t thread = area_.of(static_cast<int>(rank)).thread.load();
  if (process <= 0 || thread <= 0) return;
  in_system_call_[rank] = sleeps_in_kernel(process, thread);
  if (area_.of(static_cast<int>(rank)).interruptible.load() == 0) return;
  // A signal would end some system calls early (sleep): not for a rank that nobody asked about.
  if (in_system_call_[rank] && !request_->by_hand && !restarts_when_interrupted(process, thread)) {
    return;
  }
  syscall(SYS_tgkill, process, thread, SIGURG);
}

std::optional<hang_view> hang_watcher::look(const std::vector<bool>& running) {
  time now = clock::now();
  hear_bell();
  if (sample_at_ && now >= *sample_at_) sample(now);
  if (circle_at_ && now >= *circle_at_) {
    circle_at_ = now + std::max(watchdog_, sample_least);
    if (!request_) {
      request brief{"", false, false, now};
      brief.brief = true;
      start(brief);
    }
  }
  if (!request_) return {};
  if (request_->brief) {
    look_for_circle(running, now);
    return {};
  }
  bool answered = true;
  bool told = true;
  for (std::size_t rank = 0; rank < running.size(); ++rank) {
    if (!takes_part(rank, running) || has_answered(rank)) continue;
    answered = false;
    told = told && (has_stack(rank) || (in_system_call_[rank] && !request_->by_hand));
  }
  nanoseconds waited = now - request_->at;
  if (!answered && !told && waited >= answer_patience &&
      now - request_->interrupted_at >= interrupt_again) {
    request_->interrupted_at = now;
    for (std::size_t rank = 0; rank < running.size(); ++rank) {
      bool done = has_answered(rank) || has_stack(rank) || is_about_to_answer(rank, waited);
      if (takes_part(rank, running) && !done) interrupt(rank);
    }
    return {};
  }
  bool enough = answered || waited >= patience || (told && waited >= stack_patience);
  if (!enough) return {};
  hang_view view = collect(running, now);
  if (waited_) {
    view.circle = circle_of_waits(*std::exchange(waited_, {}), view);
    if (is_told(view, view.circle)) view.circle.clear();
    for (const told_fiber& in_it : view.circle) {
      const rank_report& report = view.ranks[static_cast<std::size_t>(in_it.rank)].report;
      told_waits_.insert({in_it.rank, report.fibers[in_it.number].since});
    }
  }
  bool tells = !request_->circle_only || !view.circle.empty();
  request_.reset();
  if (!tells) return {};
  return view;
}

/// Why a rank does not answer, as far as the kernel tells.
rank_condition hang_watcher::standstill_of(std::size_t rank) const {
  if (is_stopped(process_state(rank))) return rank_condition::stopped;
  std::string status = "/proc/" + std::to_string(job_.ranks[rank].pid.load()) + "/status";
  return read_field(status, "CoreDumping") == "1" ? rank_condition::dying : rank_condition::silent;
}

hang_view hang_watcher::collect(const std::vector<bool>& running, time now) const {
  hang_view view;
  view.why = request_->why;
  view.proven = request_->proven;
  for (std::size_t r = 0; r < running.size(); ++r) {
    rank_view rank;
    rank_state state = job_.ranks[r].state.load();
    rank.pid = job_.ranks[r].pid.load();
    if (state == rank_state::finished || (state == rank_state::attached && !running[r])) {
      rank.condition = rank_condition::finished;
    } else if (state == rank_state::attached) {
      rank.in_system_call = in_system_call_[r];
      rank.condition = has_answered(r)                       ? rank_condition::waiting
                       : has_stack(r) || rank.in_system_call ? rank_condition::computing
                                                             : standstill_of(r);
      if (watchdog_ > nanoseconds(0)) {
        rank.quiet_seconds = duration<double>(now - progress_[r].since).count();
      }
      if (has_answered(r) || has_stack(r)) rank.report = area_.report_of(static_cast<int>(r));
      // Written by a process that may be broken.
      rank_report& report = rank.report;
      report.fiber_count = std::min<std::uint32_t>(report.fiber_count, rank_report::fibers_max);
      report.link_count = std::min<std::uint32_t>(report.link_count, rank_report::links_max);
      report.stack_count = std::min<std::uint32_t>(report.stack_count, rank_report::stack_max);
      for (fiber_record& fiber : report.fibers) {
        fiber.frame_count = static_cast<std::uint8_t>(
            std::min<std::size_t>(fiber.frame_count, fiber_record::frames_max));
        if (fiber.rank >= area_.ranks()) fiber.rank = -1;
        if (fiber.holder >= static_cast<std::int32_t>(report.fiber_count)) fiber.holder = -1;
      }
    }
    view.ranks.push_back(rank);
  }
  return view;
}

}  // namespace sojourn::detail
