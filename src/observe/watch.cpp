// SPDX-License-Identifier: Apache-2.0
#include "observe/watch.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fiber/block.hpp"
#include "fiber/held_mutexes.hpp"
#include "fiber/language_locks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_waits.hpp"
#include "fiber/timers.hpp"
#include "fiber/waiters.hpp"
#include "frames/walk.hpp"
#include "message/dispatcher.hpp"
#include "message/loop.hpp"
#include "migrate/thread_trailer.hpp"
#include "observe/backtrace.hpp"
#include "rpc/collective_messages.hpp"
#include "rpc/scopes.hpp"
#include "rpc/tickets.hpp"
#include "sojourn/detail/collective_plan.hpp"
#include "sojourn/waiting/clock.hpp"
#include "transport/neighbours.hpp"

namespace sojourn::detail {

namespace {

watch_area area;
watch_hooks hooks;
// A fiber that polls gives its turn within so many rounds of the dispatcher.
constexpr int rounds_before_an_answer = 64;

std::uint64_t ticks_at_start;
std::uint64_t ns_at_start;

/// What a piece waits for.
struct reason {
  wait_kind kind = wait_kind::unknown;
  ticket_id ticket = 0;
  int rank = -1;
  int holder = -1;
  collective operation = collective::none;
  std::uint32_t results = 0;
  std::uint64_t object = 0;  ///< An object of shared memory, or 0.
  int home = -1;             ///< The rank that keeps the object.
};
using reasons = std::unordered_map<const piece*, reason>;

/// What is known of one wait for several results; found by the ticket that stands for the wait.
struct several_results {
  reason one;  ///< Why one of the results is not here.
  std::uint32_t missing = 0;
};

struct collecting {
  reasons why;
  std::unordered_map<ticket_id, several_results> several;
  std::vector<piece*> pieces;
  rank_report* report;
};

reason reason_of(const ticket& t) {
  if (const collective_wait w = collective_waiting(t.id); w.operation != collective::none) {
    return {wait_kind::collective, t.id, w.missing, -1, w.operation};
  }
  if (is_finish(t.id)) return {wait_kind::finish, t.id, -1};
  if (t.asked >= 0) return {wait_kind::call, t.id, t.asked};
  if (t.asked == ticket::for_first) return {wait_kind::first, t.id, -1};
  return {wait_kind::result, t.id, -1};
}

void look_at_ticket(const ticket& t, void* context) {
  auto& c = *static_cast<collecting*>(context);
  if (t.waiter != nullptr) c.why[t.waiter] = reason_of(t);
  if (ticket_id waiting = waits_for_several(t); waiting != 0 && t.is_awaited()) {
    several_results& all = c.several[waiting];
    if (++all.missing == 1) all.one = reason_of(t);
  }
  if (ticket_id to = forwarded_to(t); to != 0 && c.report->link_count < rank_report::links_max) {
    c.report->links[c.report->link_count++] = {t.id, to};
  }
}

/// A wait for all of several results, or for one that alone is missing, is told as a wait for one
/// of these results. A wait for the first of several leads to none of them for certain.
void look_into_waits_for_several(collecting& c) {
  for (auto& [p, why] : c.why) {
    const auto found = c.several.find(why.ticket);
    if (found == c.several.end()) continue;
    const several_results& all = found->second;
    const bool is_certain = why.kind != wait_kind::first || all.missing == 1;
    why = all.one;
    if (is_certain) continue;
    why.kind = wait_kind::first;
    why.results = all.missing;
  }
}

void look_at_piece(piece* p, void* context) {
  if (p != spare_piece()) static_cast<collecting*>(context)->pieces.push_back(p);
}

bool is_main(const piece* p) { return slots.is_main(p->slot) && p->hi == slots.high(p->slot); }

/// The kind of a wait at an object of shared memory that has a home.
wait_kind kind_at_shared_object(waits_at at) {
  switch (at) {
    case waits_at::shared_atomic:
      return wait_kind::shared_atomic;
    case waits_at::shared_flag:
      return wait_kind::shared_flag;
    case waits_at::shared_condition:
      return wait_kind::shared_condition;
    case waits_at::shared_counted_barrier:
      return wait_kind::shared_counted_barrier;
    default:
      return wait_kind::unknown;
  }
}

/// The reason for a wait that only fibers of this rank, or the clock, can end.
reason local_reason(const piece* p) {
  if (p->restored && p->word != resumed::not_yet) return {wait_kind::barrier};
  if (p->waits_on == nullptr) {
    return {p->timer != 0 ? wait_kind::time : wait_kind::unknown};
  }
  if (p->waits_on->kind == waits_at::shared_mutex) {
    return {.kind = wait_kind::shared_mutex,
            .object = static_cast<const shared_lock&>(*p->waits_on).object};
  }
  if (has_shared_object(p->waits_on->kind)) {
    const auto& queue = static_cast<const waiters_for_event&>(*p->waits_on);
    return {.kind = kind_at_shared_object(queue.kind),
            .results = static_cast<std::uint32_t>(queue.fibers),
            .object = queue.object,
            .home = queue.home};
  }
  switch (p->waits_on->kind) {
    case waits_at::mutex:
      return {wait_kind::mutex};
    case waits_at::static_variable:
      return {wait_kind::static_variable};
    case waits_at::once:
      return {wait_kind::once};
    case waits_at::condition_variable:
      return {wait_kind::condition};
    case waits_at::semaphore:
      return {wait_kind::semaphore};
    case waits_at::latch:
      return {wait_kind::latch};
    case waits_at::dist_object:
      return {wait_kind::dist_object};
    case waits_at::shared_page:
      return {wait_kind::shared_page};
    case waits_at::shared_local_barrier:
      return {wait_kind::shared_local_barrier};
    default:
      return {wait_kind::shared_barrier};
  }
}

double ns_a_tick() {
  double passed = static_cast<double>(ticks() - ticks_at_start);
  return passed > 0 ? static_cast<double>(now_ns() - ns_at_start) / passed : 0;
}

/// Does not trust the length of the name, because the interrupted code may be writing it.
void write_name(told_name& told, const piece* p) {
  static_assert(sizeof told == decltype(thread_extra::name)::capacity() + 1);
  std::memset(told, 0, sizeof told);
  const thread_extra* extra = p->extra;
  if (extra == nullptr) return;
  std::memcpy(told, extra->name.data(), std::min(extra->name.size(), sizeof told - 1));
}

/// `walks`: writes the fiber's frames, too, which must be in place.
void write_fiber(fiber_record& record, const piece* p, const reason& why, double ns_per_tick,
                 bool walks) {
  record = {};
  record.kind = why.kind;
  record.piece = reinterpret_cast<std::uint64_t>(p);
  record.since = p->since;
  record.waits_for = why.ticket;
  record.rank = why.rank;
  record.object = why.object;
  record.home = why.home;
  record.holder = why.holder;
  record.results = why.results;
  record.left_ns = fiber_record::no_limit;
  if (std::uint64_t due = timer_of(p), now = now_ns(); due != never_ns) {
    record.left_ns = due > now ? due - now : 0;
  }
  record.result = p->result;
  record.scope = finish_of(p->scope);
  record.is_main = is_main(p);
  write_name(record.thread, p);
  record.operation = static_cast<std::uint8_t>(why.operation);
  if (p->since != 0 && why.kind != wait_kind::ready) {
    record.waited_ns =
        static_cast<std::uint64_t>(static_cast<double>(ticks() - p->since) * ns_per_tick);
  }
  if (!walks) return;
  record.frame_count =
      static_cast<std::uint8_t>(walk_suspended(p, record.frames, fiber_record::frames_max));
}

/// The fibers of an interrupted rank, except the running one; the main fiber is kept apart. The
/// interrupted code may be the runtime's, so this reads only what can be read at any moment, and
/// allocates and moves nothing.
struct others {
  const piece* newest[rank_report::fibers_max];
  std::size_t count;
  const piece* main;
};

void look_at_other(piece* p, void* context) {
  auto& o = *static_cast<others*>(context);
  if (p == spare_piece() || p == running_piece() || p->sp == 0) return;
  if (is_main(p)) {
    o.main = p;
    return;
  }
  // Leaves the last place to the main fiber.
  std::size_t at = o.count;
  while (at > 0 && o.newest[at - 1]->since < p->since) --at;
  constexpr std::size_t most = rank_report::fibers_max - 1;
  if (at == most) return;
  o.count = std::min(o.count + 1, most);
  for (std::size_t i = o.count - 1; i > at; --i) o.newest[i] = o.newest[i - 1];
  o.newest[at] = p;
}

struct list_of_turns {
  const piece* first;  // linked by next_ready
  wait_kind kind;
};
/// The lists of pieces that only wait for their turn.
std::array<list_of_turns, 2> lists_of_turns() {
  return {{{first_ready, wait_kind::ready}, {first_shut_out, wait_kind::being_read}}};
}

reason reason_of_other(const piece* p) {
  if (p->waits == wait_cause::ticket) {
    const ticket* t = find_ticket(p->waits_for);
    return t != nullptr ? reason_of(*t) : reason{};
  }
  if (p == hooks.parked_main()) return {wait_kind::fibers, 0, -1};
  reason local = local_reason(p);
  if (local.kind != wait_kind::unknown) return local;
  int most = 10'000;  // a list that is being changed may have no end
  for (const auto& [first, kind] : lists_of_turns()) {
    for (const piece* q = first; q != nullptr && --most > 0; q = q->next_ready) {
      if (q == p) return {kind, 0, -1};
    }
  }
  return local;
}

bool holds(const mutex_state* latest, const waiters* wanted) {
  int most = 1000;
  for (const mutex_state* m = latest; m != nullptr && --most > 0; m = m->before) {
    if (m == wanted) return true;
  }
  return false;
}

int place_of(const piece* p, const others& o) {
  if (p == running_piece()) return fiber_record::holder_runs;
  for (std::size_t i = 0; i < o.count; ++i) {
    if (o.newest[i] == p) return static_cast<int>(i);
  }
  return -1;
}

int holder_of(const waiters* wanted, const others& o) {
  if (wanted == nullptr) return -1;
  if (const piece* p = initialiser_of(wanted); p != nullptr) return place_of(p, o);
  if (holds(running.mutexes, wanted)) return fiber_record::holder_runs;
  for (std::size_t i = 0; i < o.count; ++i) {
    if (holds(o.newest[i]->mutexes, wanted)) return static_cast<int>(i);
  }
  return -1;
}

/// Reports the shared::mutexes in `latest`, a list of what the fiber `holder` holds.
void tell_of_held(rank_report& report, const mutex_state* latest, std::int32_t holder) {
  int most = 1000;
  for (const mutex_state* m = latest; m != nullptr && --most > 0; m = m->before) {
    if (m->kind != waits_at::shared_mutex || !m->locked) continue;
    if (report.held_count == rank_report::held_max) return;
    const auto& lock = static_cast<const shared_lock&>(*m);
    report.held[report.held_count++] = {lock.object, lock.locked_at, holder};
  }
}

void write_others(rank_report& report, bool brief) {
  report.fiber_count = report.link_count = report.held_count = 0;
  report.barrier = hooks.barrier();
  tell_of_held(report, running.mutexes, fiber_record::holder_runs);
  tell_of_held(report, held_by_ended(), held_mutex::ended);
  others o{{}, 0, nullptr};
  each_piece(look_at_other, &o);
  if (o.main != nullptr) o.newest[o.count++] = o.main;
  double ns_per_tick = ns_a_tick();
  for (std::size_t i = 0; i < o.count; ++i) {
    const piece* p = o.newest[i];
    // Part of the piece may be an image, and nothing can be put in place now.
    bool whole = !brief && p->is_in_place() && slots.low(p->slot) < p->sp && p->sp < p->hi &&
                 p->hi <= slots.high(p->slot);
    reason why = reason_of_other(p);
    if (has_holder(why.kind)) why.holder = holder_of(p->waits_on, o);
    // The list can be read only if the piece is in place, because mutexes may lie in the frames of
    // the fiber that holds them.
    if (p->is_in_place()) tell_of_held(report, p->mutexes, static_cast<std::int32_t>(i));
    write_fiber(report.fibers[report.fiber_count++], p, why, ns_per_tick, whole);
  }
}

/// Answers a request for a report, if there is one. Called around sleeps: a rank that is asked
/// while it sleeps is woken, and one that runs comes here before it sleeps.
void answer_request() {
  rank_watch& mine = area.of(job.me);
  std::uint32_t wanted = mine.report_wanted.load();
  if (wanted == mine.report_given.load(std::memory_order_relaxed)) return;
  write_report(area.report_of(job.me), mine.brief_wanted.load() == wanted);
  mine.report_given.store(wanted, std::memory_order_release);
}

// The number of the last request for which a signal has found this rank in its dispatcher.
std::atomic<std::uint32_t> interrupted_for = 0;

/// For a rank that never sleeps, because it has much to do, or because cores are so busy that its
/// next fiber is due before it can sleep. Such a rank answers between two rounds. It waits until it
/// is idle, so that a fiber which is about to give its turn can tell of itself, but no longer than
/// `rounds_before_an_answer` rounds after it was interrupted for this request.
void answer_between_rounds(bool idle) {
  static std::uint32_t asked = 0;
  static int rounds = 0;
  if (idle) return answer_request();
  const rank_watch& mine = area.of(job.me);
  std::uint32_t wanted = mine.report_wanted.load();
  if (interrupted_for.load() != wanted || mine.stack_given.load() == wanted) return;
  if (std::exchange(asked, wanted) != wanted) rounds = 0;
  if (++rounds > rounds_before_an_answer) return answer_request();
  call_next_round();
}

/// True when this process has threads other than its first and the rank's. Only these could start
/// new ones, so if there are none when the rank falls asleep, there are none while it sleeps.
bool has_more_threads() {
  constexpr int own = 2;
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return true;
  int threads = 0;
  while (const dirent* each = readdir(tasks)) threads += each->d_name[0] != '.' ? 1 : 0;
  closedir(tasks);
  return threads > own;
}

void around_sleep(bool falls_asleep) {
  rank_watch& mine = area.of(job.me);
  if (!falls_asleep) {
    mine.epoch.fetch_add(1);
    area.all().asleep.fetch_sub(1);
    return answer_request();
  }
  answer_request();
  traffic own = traffic_so_far();
  traffic collective = collective_traffic_so_far();
  mine.sent.store(own.sent + collective.sent, std::memory_order_relaxed);
  mine.received.store(own.received + collective.received, std::memory_order_relaxed);
  mine.wakes_at_ns.store(next_timer_ns == never_ns ? 0 : next_timer_ns, std::memory_order_relaxed);
  const bool may_be_woken =
      (takes_posts() && has_more_threads()) || (job.near != job.count && waits_for_room());
  mine.may_be_woken.store(may_be_woken ? 1 : 0, std::memory_order_relaxed);
  mine.epoch.fetch_add(1);
  // The last rank to fall asleep sees all others asleep.
  auto ranks = static_cast<std::uint32_t>(area.ranks());
  if (area.all().asleep.fetch_add(1) + 1 == ranks && near_ranks().nothing_can_happen())
    hooks.deadlocked();
}

/// The handler of SIGURG, for a rank that does not come to its dispatcher: tells what code it runs,
/// and what its other fibers do.
void on_interrupt(int, siginfo_t*, void* context) {
  int saved = errno;
  on_dispatch.interrupted(context);
  rank_watch& mine = area.of(job.me);
  std::uint32_t wanted = mine.report_wanted.load();
  if (wanted != mine.report_given.load() && wanted != mine.stack_given.load()) {
    rank_report& report = area.report_of(job.me);
    const piece* p = running_piece();
    // The signal has found the dispatcher, which is about to answer, or to run a fiber. If that
    // fiber polls, it tells of itself when it gives its turn.
    if (!interrupted_fiber(context)) {
      interrupted_for.store(wanted);
      at_next_turn.store([] { raise(SIGURG); });
      call_next_round();
      errno = saved;
      return;
    }
    const bool brief = mine.brief_wanted.load() == wanted;
    report.stack_count = brief ? 0
                               : static_cast<std::uint32_t>(walk_interrupted(
                                     context, p->hi, report.stack, rank_report::stack_max));
    // Plus 1 for a handler that runs on the spare stack and has not blocked: it is not counted yet.
    report.fibers_alive = static_cast<std::uint32_t>(fibers_unfinished()) + (p == spare_piece());
    report.runs_for = p->result;
    write_name(report.runs_thread, p);
    write_others(report, brief);
    mine.stack_given.store(wanted, std::memory_order_release);
  }
  errno = saved;
}

void on_user_signal(int) {
  int saved = errno;
  area.all().asked.fetch_add(1);
  hooks.asked();
  errno = saved;
}

/// Sets a handler for `signal`. Returns false when the program has a handler of its own, which
/// stays.
bool handle(int signal, void (*plain)(int), void (*with_context)(int, siginfo_t*, void*)) {
  struct sigaction before;
  if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return false;
  struct sigaction action{};
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  if (with_context != nullptr) {
    action.sa_flags |= SA_SIGINFO;
    action.sa_sigaction = with_context;
  } else {
    action.sa_handler = plain;
  }
  return sigaction(signal, &action, nullptr) == 0;
}

/// Puts the frames of `p` in place, because mutexes and the object that it waits for may lie in
/// them. Leaves a piece that another rank reads as it is. Returns whether `p` is in place.
bool bring(piece* p) {
  if (must_not_be_placed(p)) return p->is_in_place();
  place(p);
  return true;
}

}  // namespace

void write_report(rank_report& report, bool brief) {
  report.fiber_count = report.link_count = report.stack_count = report.held_count = 0;
  report.barrier = hooks.barrier();
  collecting c{{}, {}, {}, &report};
  each_open_ticket(look_at_ticket, &c);
  look_into_waits_for_several(c);
  each_waiting_sender(
      [](const piece* waiter, int to, void* context) {
        static_cast<collecting*>(context)->why[waiter] = {wait_kind::room, 0, to};
      },
      &c);
  for (const auto& [first, kind] : lists_of_turns()) {
    for (const piece* p = first; p != nullptr; p = p->next_ready) c.why[p] = {kind, 0, -1};
  }
  if (const piece* p = hooks.parked_main(); p != nullptr) c.why[p] = {wait_kind::fibers, 0, -1};
  each_piece(look_at_piece, &c);

  std::sort(c.pieces.begin(), c.pieces.end(), [](const piece* a, const piece* b) {
    return is_main(a) != is_main(b) ? is_main(b) : a->since > b->since;
  });
  report.fibers_alive = static_cast<std::uint32_t>(c.pieces.size());
  // Leaves a place for the main fiber, the last one, even if there are more fibers than a report
  // has room for.
  std::vector<piece*> untold;
  if (c.pieces.size() > rank_report::fibers_max) {
    const auto first = c.pieces.begin() + rank_report::fibers_max - 1;
    untold.assign(first, c.pieces.end() - 1);
    c.pieces.erase(first, c.pieces.end() - 1);
  }
  std::unordered_map<const waiters*, int> holders;
  for (std::size_t i = 0; i < c.pieces.size(); ++i) {
    if (c.pieces[i]->mutexes == nullptr || !bring(c.pieces[i])) continue;
    for (const mutex_state* m = c.pieces[i]->mutexes; m != nullptr; m = m->before) {
      holders[m] = static_cast<int>(i);
    }
    tell_of_held(report, c.pieces[i]->mutexes, static_cast<std::int32_t>(i));
  }
  tell_of_held(report, held_by_ended(), held_mutex::ended);
  for (piece* p : untold) {
    if (p->mutexes != nullptr && bring(p)) tell_of_held(report, p->mutexes, held_mutex::untold);
  }
  double ns_per_tick = ns_a_tick();
  for (piece* p : c.pieces) {
    bool walks = !brief && bring(p);
    auto found = c.why.find(p);
    bool readable = walks || p->is_in_place() ||
                    !addresses.in_stacks(reinterpret_cast<std::uint64_t>(p->waits_on));
    reason why = found != c.why.end() ? found->second : readable ? local_reason(p) : reason{};
    if (auto holder = holders.find(p->waits_on); holder != holders.end()) {
      why.holder = holder->second;
    } else if (const piece* by = initialiser_of(p->waits_on); by != nullptr) {
      const auto found_at = std::ranges::find(c.pieces, by);
      if (found_at != c.pieces.end()) why.holder = static_cast<int>(found_at - c.pieces.begin());
    }
    fiber_record& record = report.fibers[report.fiber_count++];
    write_fiber(record, p, why, ns_per_tick, walks);
    record.takes_part = hooks.takes_part(p);
  }
}

void attach_watch(const watch_area& memory, const watch_hooks& above) {
  area = memory;
  hooks = above;
  ticks_at_start = ticks();
  ns_at_start = now_ns();
  prepare_walks();
  // Without a handler SIGURG is ignored. So a request that comes before this, or to a program that
  // has taken the signal for itself, does no harm.
  area.of(job.me).thread.store(static_cast<std::int32_t>(syscall(SYS_gettid)));
  area.of(job.me).interruptible.store(handle(SIGURG, nullptr, on_interrupt));
  handle(SIGUSR1, on_user_signal, nullptr);
  // Ctrl-\ reaches the ranks, too, but it is meant for the launcher, which then asks them for
  // reports.
  if (hooks.has_launcher) handle(SIGQUIT, [](int) {}, nullptr);
  on_dispatch.around_sleep = around_sleep;
  on_dispatch.next_round = answer_between_rounds;
}

}  // namespace sojourn::detail
