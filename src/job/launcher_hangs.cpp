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
constexpr milliseconds interrupt_again{20};
constexpr milliseconds look_again{2};
// Turns given a second by a fiber that polls. A loop that computes gives some, too.
constexpr double polling = 1000;
constexpr nanoseconds sample_least = milliseconds(50);
constexpr nanoseconds sample_most = milliseconds(1000);

/// What moves when a rank does something. It sleeps and wakes for reports, too, and what it resumes
/// may only poll.
std::uint64_t counted(const counts_page& page) {
  counters c = page.now();
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

/// True when the kernel has the thread sleep.
bool sleeps_in_kernel(std::int32_t process, std::int32_t thread) {
  std::string stat = read_line(thread_file(process, thread, "stat"));
  std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  char state = stat[name_end + 2];
  return state == 'S' || state == 'D';
}

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
  for (progress& p : progress_) p.since = progress_at_;
  if (watchdog_ > nanoseconds(0)) sample_at_ = progress_at_;
}

std::optional<hang_watcher::time> hang_watcher::next_deadline() const {
  if (!request_) return sample_at_;
  time next = clock::now() + look_again;
  return sample_at_ ? std::min(*sample_at_, next) : next;
}

void hang_watcher::ask(const std::string& why) { start({why, false, true, clock::now()}); }

void hang_watcher::start(request r) {
  if (request_) {
    // The answers on their way serve for this, too.
    request_->by_hand |= r.by_hand;
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
        job_.ranks[rank].state.load() == rank_state::attached && area_.ask(rank, number_);
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
  double passed = duration<double>(now - std::exchange(sampled_at_, now)).count();
  for (int rank = 0; rank < area_.ranks(); ++rank) {
    progress& p = progress_[static_cast<std::size_t>(rank)];
    const counts_page& page = job_.counts_of(rank);
    std::uint64_t yields = __atomic_load_n(&page.yields, __ATOMIC_RELAXED);
    bool polls = static_cast<double>(yields - std::exchange(p.yields, yields)) > polling * passed;
    some_wait = some_wait || area_.is_asleep(rank) || polls;
    some_sleep = some_sleep || area_.sleeps_for_a_time(rank);
    // One that joins does something, too.
    std::uint64_t count = counted(page) + static_cast<std::uint64_t>(job_.ranks[rank].state.load());
    std::int64_t went_on = resumed(page);
    if (count == std::exchange(p.counted, count) && went_on <= p.resumed) continue;
    p.resumed = std::max(p.resumed, went_on);
    p.since = progress_at_ = now;
    reported_ = false;
  }
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
  double seconds = duration<double>(quiet).count();
  start({format(seconds < 1 ? "no rank has sent a message or run a fiber for %.2f s"
                            : "no rank has sent a message or run a fiber for %.0f s",
                seconds < 1 ? seconds : std::floor(seconds)),
         false, false, now});
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
  if (!request_) return {};
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
      bool done = has_answered(rank) || has_stack(rank) || was_asleep_[rank];
      if (takes_part(rank, running) && !done) interrupt(rank);
    }
    return {};
  }
  bool enough = answered || waited >= patience || (told && waited >= stack_patience);
  if (!enough) return {};
  hang_view view = collect(running, now);
  request_.reset();
  return view;
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
                                                             : rank_condition::silent;
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
