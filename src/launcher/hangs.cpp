// SPDX-License-Identifier: Apache-2.0
#include "launcher/hangs.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "base/kernel_files.hpp"
#include "launcher/kernel_threads.hpp"
#include "observe/wait_circle.hpp"

namespace sojourn::detail {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Ranks that sleep answer at once; those that run get this long to come to their dispatcher.
constexpr milliseconds answer_patience{50};
// A rank that was interrupted, and so has given only a stack, may still give a whole report until
// this long after the request.
constexpr milliseconds stack_patience{100};
// A rank that was interrupted answers as soon as it has a core: when it has run for this long
// since, it will not answer.
constexpr milliseconds own_patience{200};
// A rank that does not run may be held in the kernel, and gets this long in all; …
constexpr milliseconds patience{2000};
// … one that may be waiting for a core gets this long.
constexpr milliseconds core_patience{10'000};
constexpr milliseconds interrupt_again{20};
constexpr milliseconds look_again{2};
// What lasts long is looked at less often: again after the time that it has lasted, divided by
// this.
constexpr int part_of_the_time = 16;
// A fiber polls when it gives more turns than this in a second that its rank has run. A loop that
// computes gives some, too.
constexpr double polling = 1000;
// Bytes that a loop which polls may read each time.
constexpr std::uint64_t read_a_turn = 64;
// A rank that computes is reported when it has not come to its scheduler for so many periods of the
// watchdog: a minute, by default.
constexpr int periods_of_computing = 6;
constexpr nanoseconds sample_least = milliseconds(50);
constexpr nanoseconds sample_most = milliseconds(1000);

/// Sum of the counters that move when a rank makes progress. Sleeps and wake-ups are left out,
/// since reports cause some, and switches, since a resumed fiber may only poll. What the rank reads
/// and answers goes to `reads`, since it may only answer another rank that polls.
std::uint64_t counted(const counts_page& page, std::uint64_t& reads) {
  counters c = page.now();
  reads = c.bulk_messages + c.bulk_bytes + c.bulk_copies + c.replies_sent + c.reply_bytes;
  c.bulk_messages = c.bulk_bytes = c.bulk_copies = c.replies_sent = c.reply_bytes = 0;
  c.sleeps = c.wakeups_sent = c.switches = c.images_in = c.images_out = 0;
  auto values = c.values();
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0}) + page.methods;
}

/// Bounds of the number of resumed fibers, without those that only gave their turn. There are only
/// bounds, because the rank goes on while its counts are read, and counts a turn before it resumes
/// the fiber.
struct resumed_range {
  std::int64_t least;
  std::int64_t most;
};
resumed_range resumed(const counts_page& page) {
  std::uint64_t before = __atomic_load_n(&page.yields, __ATOMIC_ACQUIRE);
  std::uint64_t switches = __atomic_load_n(&page.switches, __ATOMIC_ACQUIRE);
  std::uint64_t behind = __atomic_load_n(&page.yields, __ATOMIC_RELAXED);
  return {static_cast<std::int64_t>(switches - behind),
          static_cast<std::int64_t>(switches - before) + 1};
}

}  // namespace

std::string standstill_text(double seconds) {
  return format(seconds < 1 ? "no rank has sent a message or run a fiber for %.2f s"
                            : "no rank has sent a message or run a fiber for %.0f s",
                seconds < 1 ? seconds : std::floor(seconds));
}

hang_watcher::hang_watcher(job_segment& job, int bell, double watchdog_seconds)
    : job_(job),
      area_(job.watch()),
      bell_(bell),
      watchdog_(std::chrono::duration_cast<nanoseconds>(duration<double>(watchdog_seconds))),
      progress_(job.rank_count),
      progress_at_(clock::now()),
      asked_(job.rank_count) {
  for (progress& p : progress_) p.since = p.runs_since = progress_at_;
  if (watchdog_ > nanoseconds(0)) {
    sample_at_ = progress_at_;
    // Fibers of several hosts may be in it.
    if (!job.has_several_hosts()) circle_at_ = progress_at_ + watchdog_;
  }
}

std::optional<hang_watcher::time> hang_watcher::next_deadline() const {
  std::optional<time> next = sample_at_;
  if (circle_at_) next = std::min(*next, *circle_at_);
  if (!request_) return next;
  time now = clock::now();
  time again = now + std::max<nanoseconds>(look_again, (now - request_->at) / part_of_the_time);
  return next ? std::min(*next, again) : again;
}

void hang_watcher::ask(const std::string& why) { start({why, false, true, clock::now()}); }

void hang_watcher::start(request r) {
  if (request_ && request_->brief) request_.reset();
  if (request_) {
    // The answers that are on their way serve for this request, too.
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
  std::fill(asked_.begin(), asked_.end(), asked_rank{});
  for (int rank = 0; rank < area_.ranks(); ++rank) {
    if (job_.ranks[rank].state.load() == rank_state::attached) {
      area_.ask(rank, number_, request_->brief);
    }
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
  std::vector<bool> did(progress_.size());  // made progress
  std::vector<bool> read(progress_.size());
  for (int rank = 0; rank < area_.ranks(); ++rank) {
    auto r = static_cast<std::size_t>(rank);
    progress& p = progress_[r];
    const counts_page& page = job_.counts_of(rank);
    std::uint64_t yields = __atomic_load_n(&page.yields, __ATOMIC_RELAXED);
    std::uint64_t yielded = yields - std::exchange(p.yields, yields);
    bool polls = yielded != 0 && turns_are_many(r, yields, now);
    some_poll = some_poll || polls;
    turns += yielded;
    some_wait = some_wait || area_.is_asleep(rank) || polls;
    some_sleep = some_sleep || area_.sleeps_for_a_time(rank) ||
                 (now - p.runs_since < watchdog_ && has_sleeper(rank, now));
    std::uint64_t moved = __atomic_load_n(&page.bulk_bytes, __ATOMIC_RELAXED);
    bytes_read += moved - std::exchange(p.bytes_read, moved);
    // A rank that joins the job makes progress, too.
    std::uint64_t reads;
    std::uint64_t count =
        counted(page, reads) + static_cast<std::uint64_t>(job_.ranks[rank].state.load());
    resumed_range went_on = resumed(page);
    did[r] = count != std::exchange(p.counted, count) || went_on.least > p.resumed_at_most;
    read[r] = reads != std::exchange(p.reads, reads);
    p.resumed_at_most = did[r] ? went_on.most : std::min(p.resumed_at_most, went_on.most);
    // A rank that answers has come to its scheduler; on busy cores it may be long until it sleeps.
    std::uint32_t given = area_.of(rank).report_given.load();
    bool answered = given != std::exchange(p.report_given, given);
    if (did[r] || read[r] || yielded != 0 || answered || area_.is_asleep(rank)) p.runs_since = now;
  }
  // A loop that polls another rank reads what it asks for, and the other rank answers: no progress.
  bool only_polls = some_poll && bytes_read <= read_a_turn * turns;
  for (std::size_t r = 0; r < progress_.size(); ++r) {
    if (!did[r] && (!read[r] || only_polls)) continue;
    progress_[r].since = progress_at_ = now;
    reported_ = false;
    standstill_.reset();
  }
  if (!job_.has_several_hosts()) look_at_ranks(now, some_wait);
  // The others may wait for a fiber that sleeps. Their wait counts from the end of that sleep: a
  // fiber that has just woken has done nothing yet.
  if (some_sleep) progress_at_ = now;
  nanoseconds quiet = now - progress_at_;
  if (quiet < watchdog_ / 2 || reported_) return;
  // A rank may also wait in the kernel, for a lock or for another process.
  for (std::size_t rank = 0; rank < progress_.size(); ++rank) {
    some_wait = sleeps_on(rank) || some_wait;
  }
  if (quiet >= watchdog_ && job_.has_several_hosts()) {
    standstill_ = some_wait;
    return;
  }
  // When nobody waits, each rank computes for itself.
  if (quiet < watchdog_ || !some_wait) return;
  reported_ = true;
  // This report tells of ranks that compute, too: they need none of their own.
  for (progress& p : progress_) p.is_told = p.is_told || now - p.runs_since >= watchdog_ / 2;
  start({standstill_text(duration<double>(quiet).count()), false, false, now});
}

/// True when a fiber of the rank gives its turn often, measured by the time that the rank has had a
/// core: on busy cores it may have had little.
bool hang_watcher::turns_are_many(std::size_t rank, std::uint64_t yields, time now) {
  progress& p = progress_[rank];
  nanoseconds ran = core_use_of(worker(rank)).ran;
  if (ran == nanoseconds(0)) ran = now.time_since_epoch();  // the kernel does not tell
  double turns = static_cast<double>(yields - std::exchange(p.yields_when_asked, yields));
  double seconds = duration<double>(ran - std::exchange(p.ran_when_asked, ran)).count();
  return turns > polling * seconds;
}

/// True when a fiber of the rank still sleeps for a time, by what the rank told when it last fell
/// asleep. The rank itself may have woken only to tell of its waits.
bool hang_watcher::has_sleeper(int rank, time now) const {
  std::uint64_t wakes_at = area_.of(rank).wakes_at_ns.load();
  return wakes_at > job_.clock_ahead_ns &&
         nanoseconds(wakes_at - job_.clock_ahead_ns) > now.time_since_epoch();
}

/// Reports ranks for which others wait, even when some of the others go on: each rank once.
void hang_watcher::look_at_ranks(time now, bool some_sleep) {
  for (std::size_t rank = 0; rank < progress_.size(); ++rank) {
    progress& p = progress_[rank];
    if (p.is_told || job_.ranks[rank].state.load() != rank_state::attached) continue;
    if (now - p.since < watchdog_) {
      p.was_stopped = false;
      continue;
    }
    // A rank that is stopped only for a moment, say by a debugger, does not hang: so two looks must
    // find it stopped.
    rank_condition held = what_holds(rank);
    bool stopped = held != rank_condition::silent;
    if (stopped && std::exchange(p.was_stopped, stopped)) {
      p.is_told = true;
      const char* how = held == rank_condition::frozen ? "frozen" : "stopped";
      start({format("rank %zu is %s", rank, how), false, false, now});
    }
    p.was_stopped = stopped;
    nanoseconds runs = now - p.runs_since;
    bool some_wait = some_sleep;
    if (stopped || runs < periods_of_computing * watchdog_) continue;
    // On busy cores a rank that waits may never be seen asleep, but its report says that it waits.
    for (std::size_t other = 0; other < progress_.size() && !some_wait; ++other) {
      some_wait = other != rank && progress_[other].waits;
    }
    if (!some_wait) continue;
    p.is_told = true;
    start({format("rank %zu has not returned to its scheduler for %.0f s, and others wait", rank,
                  std::floor(duration<double>(runs).count())),
           false, false, now});
  }
}

thread_id hang_watcher::worker(std::size_t rank) const {
  return {job_.ranks[rank].pid.load(), area_.of(static_cast<int>(rank)).thread.load()};
}

/// True when some fiber in `view` has waited for another one, without a time limit, for at least
/// half the watchdog's period.
bool hang_watcher::someone_waits_long(const hang_view& view) const {
  for (const rank_view& rank : view.ranks) {
    for (std::uint32_t i = 0; i < rank.report.fiber_count; ++i) {
      const fiber_record& f = rank.report.fibers[i];
      if (waits_for_a_fiber(f) && nanoseconds(f.waited_ns) >= watchdog_ / 2) return true;
    }
  }
  return false;
}

/// True when some fiber in `report` has waited that long for something, without a time limit.
bool hang_watcher::waits_long(const rank_report& report) const {
  return std::any_of(report.fibers, report.fibers + report.fiber_count, [&](const fiber_record& f) {
    bool for_something = f.kind != wait_kind::ready && f.kind != wait_kind::unknown;
    return for_something && f.left_ns == fiber_record::no_limit &&
           nanoseconds(f.waited_ns) >= watchdog_ / 2;
  });
}

/// Fibers that wait for each other in a circle are a hang, whatever else runs. A first look, which
/// disturbs the ranks as little as possible, finds a circle; a second look proves it, and reports
/// it. Answers may be late: since all of the first look came before the second began, waits that
/// are in both held at one moment. A rank that does not answer is left out.
void hang_watcher::look_for_circle(const std::vector<bool>& running, time now) {
  bool answered = true;
  for (std::size_t rank = 0; rank < running.size(); ++rank) {
    answered = answered && (!takes_part(rank, running) || has_answered(rank) || has_stack(rank));
  }
  nanoseconds waited = now - request_->at;
  if (!answered && (waited < answer_patience || !interrupts_are_due(now))) return;
  hang_view view = collect(running, now);
  if (!answered) {
    bool some_wait_long = someone_waits_long(view);
    bool some_come = false;
    for (std::size_t rank = 0; rank < running.size(); ++rank) {
      if (!takes_part(rank, running) || has_answered(rank) || has_stack(rank)) continue;
      // Interrupt only ranks that others may wait for, or that never sleep because a fiber polls.
      if (!some_wait_long && now - progress_[rank].runs_since > sample_most) continue;
      if (is_in_system_call(rank) || !may_answer(rank, now)) continue;
      some_come = true;
      interrupt(rank);
    }
    if (some_come) return;
  }
  request_.reset();
  for (std::size_t rank = 0; rank < running.size(); ++rank) {
    progress_[rank].waits = waits_long(view.ranks[rank].report);
  }
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
  std::string sleep;
  if (job_.ranks[rank].state.load() == rank_state::attached) sleep = sleep_of(worker(rank));
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

/// True when the rank was found in a system call and is still there.
bool hang_watcher::is_in_system_call(std::size_t rank) const {
  const asked_rank& asked = asked_[rank];
  if (!asked.in_system_call || has_stack(rank)) return asked.in_system_call;
  return sleeps_in_kernel(state_of(worker(rank))) &&
         core_use_of(worker(rank)).turns == asked.core.turns;
}

/// True when it is worth waiting for the answer of a rank that has given none.
bool hang_watcher::may_answer(std::size_t rank, time now) const {
  const asked_rank& asked = asked_[rank];
  if (asked.interrupted && core_use_of(worker(rank)).ran - asked.core.ran >= own_patience) {
    return false;
  }
  const bool runs = state_of(worker(rank)) == 'R';
  return now - request_->at < (runs ? core_patience : patience);
}

bool hang_watcher::interrupts_are_due(time now) {
  nanoseconds least =
      std::max<nanoseconds>(interrupt_again, (now - request_->at) / part_of_the_time);
  if (now - request_->interrupted_at < least) return false;
  request_->interrupted_at = now;
  return true;
}

void hang_watcher::interrupt(std::size_t rank) {
  const thread_id worker = this->worker(rank);
  if (worker.process <= 0 || worker.thread <= 0) return;
  asked_rank& asked = asked_[rank];
  if (!asked.interrupted) asked.core = core_use_of(worker);
  asked.in_system_call =
      sleeps_in_kernel(state_of(worker)) && what_holds(rank) == rank_condition::silent;
  if (asked.in_system_call) asked.core.turns = core_use_of(worker).turns;
  if (area_.of(static_cast<int>(rank)).interruptible.load() == 0) return;
  // A signal would end some system calls early (sleep), so it is not sent unless somebody asked.
  if (asked.in_system_call && !request_->by_hand && !restarts_when_interrupted(worker)) return;
  asked.interrupted = true;
  syscall(SYS_tgkill, worker.process, worker.thread, SIGURG);
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
  if (!has_enough(running, now)) return {};
  hang_view view = collect(running, now);
  if (waited_) {
    view.circle = circle_of_waits(*std::exchange(waited_, {}), view);
    if (is_told(view, view.circle)) view.circle.clear();
    for (const told_fiber& in_it : view.circle) {
      const rank_report& report = view.ranks[static_cast<std::size_t>(in_it.rank)].report;
      told_waits_.insert({in_it.rank, report.fibers[in_it.number].since});
    }
  }
  // Between the question and the answers all may have gone on to their end.
  const bool all_finished = std::ranges::all_of(
      view.ranks, [](const rank_view& r) { return r.condition == rank_condition::finished; });
  const bool tells =
      request_->by_hand || (!all_finished && (!request_->circle_only || !view.circle.empty()));
  request_.reset();
  if (!tells) return {};
  return view;
}

/// True when all that may answer has answered; interrupts what is late.
bool hang_watcher::has_enough(const std::vector<bool>& running, time now) {
  nanoseconds waited = now - request_->at;
  std::vector<std::size_t> silent;
  bool answered = true;
  for (std::size_t rank = 0; rank < running.size(); ++rank) {
    if (!takes_part(rank, running) || has_answered(rank)) continue;
    answered = false;
    if (has_stack(rank) || (!request_->by_hand && is_in_system_call(rank))) continue;
    silent.push_back(rank);
  }
  if (answered) return true;
  if (silent.empty()) return waited >= stack_patience;
  if (waited < answer_patience || !interrupts_are_due(now)) return false;
  bool some_come = false;
  for (std::size_t rank : silent) {
    if (!may_answer(rank, now)) continue;
    some_come = true;
    interrupt(rank);
  }
  return !some_come;
}

/// `stopped` or `frozen` when the kernel does not let the rank run, else `silent`.
rank_condition hang_watcher::what_holds(std::size_t rank) const {
  const char state = state_of(worker(rank));
  if (is_stopped(state)) return rank_condition::stopped;
  // A frozen process looks asleep. A rank that sleeps for want of work is not checked.
  if (sleeps_in_kernel(state) && !area_.is_asleep(static_cast<int>(rank)) &&
      is_frozen(job_.ranks[rank].pid.load())) {
    return rank_condition::frozen;
  }
  return rank_condition::silent;
}

/// Why a rank does not answer, as far as the kernel tells.
rank_condition hang_watcher::standstill_of(std::size_t rank) const {
  if (rank_condition held = what_holds(rank); held != rank_condition::silent) return held;
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
      rank.in_system_call = !has_answered(r) && is_in_system_call(r);
      rank.condition = has_answered(r)                       ? rank_condition::waiting
                       : has_stack(r) || rank.in_system_call ? rank_condition::computing
                                                             : standstill_of(r);
      if (watchdog_ > nanoseconds(0)) {
        rank.quiet_seconds = duration<double>(now - progress_[r].since).count();
      }
      if (has_answered(r) || has_stack(r)) rank.report = area_.report_of(static_cast<int>(r));
      make_sound(rank.report, area_.ranks());
    }
    view.ranks.push_back(rank);
  }
  return view;
}

}  // namespace sojourn::detail
