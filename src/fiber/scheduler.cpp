// SPDX-License-Identifier: Apache-2.0
#include "fiber/scheduler.hpp"

#include <cxxabi.h>

#include <exception>
#include <utility>

#include "base/check.hpp"
#include "fiber/fork_links.hpp"
#include "fiber/held_mutexes.hpp"
#include "fiber/hooks.hpp"
#include "fiber/rules.hpp"
#include "fiber/spare_stacks.hpp"
#include "fiber/stack_copy.hpp"
#include "frames/code_owner.hpp"
#include "memory/runtime_resource.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/tasks.hpp"

extern "C" {
void* sojourn_scheduler_sp;
#if defined(__x86_64__) && !defined(SOJOURN_NO_CHECKED)
sojourn::detail::marked_call sojourn_call_marked_checked;
sojourn_marked_calls_t sojourn_marked_calls{sojourn_call_marked, sojourn_fork_marked,
                                            sojourn_fork_marked_to_stay};
#endif
}

namespace sojourn::detail {

leaving handover;
constinit thread_local fiber_view* running_fiber = nullptr;
task_queue posted;

namespace {

struct scheduler_state {
  piece* begun = nullptr;  // what run_on_spare began, until it is retired
  fp_control usual_fp = {};
} scheduler;

/// Moves into `p` what `running` says of the stack that has just left.
void record_suspension(piece* p) {
  add_suspended(p);
  auto within = [p](const void* address) {
    return reinterpret_cast<std::uint64_t>(address) < p->hi;
  };
  p->sp = p->in_place_from = reinterpret_cast<std::uint64_t>(handover.sp);
  p->youngest =
      running.youngest != nullptr && within(running.youngest) ? running.youngest : nullptr;
  p->holds = running.holds != nullptr && within(running.holds) ? running.holds : nullptr;
  p->static_inits = running.static_inits;
  if (running.mutexes != nullptr) [[unlikely]]
    p->mutexes = std::exchange(running.mutexes, nullptr);
  p->methods = method_depth();
  methods_were_suspended |= p->methods;
  if (is_kept(rule::exceptions_per_piece)) {
    p->exceptions = *running.exceptions;
    if (p->exceptions.caught != nullptr || p->exceptions.uncaught != 0) [[unlikely]] {
      *running.exceptions = {};
    }
  }
  p->marks_hold_exceptions = p->marks_hold_methods = p->has_pinned_fork = false;
  for (mark* m = p->youngest; m != nullptr && within(m); m = m->outer) {
    note_mark(*m, *p);
  }
  p->has_forks = may_have_forks();
  p->links = links_of_running();
  p->word = resumed::not_yet;
  p->fp = read_fp();
  if (p->fp != scheduler.usual_fp) [[unlikely]]
    write_fp(scheduler.usual_fp);
}

/// Runs on the scheduler's stack after a stack has left.
[[gnu::always_inline]] inline void after_leaving() {
  confirm_switch();
  piece* p = running_piece();
  if (p == nullptr) {  // an abandoned stack
    if (in_forked_child()) [[unlikely]]
      die("a process that was made by fork() has returned from where it was made, into the rank's "
          "work: end it by _exit(), or have it execute a program of its own");
    return;
  }
  leave_action action = handover.action;
  running_fiber = nullptr;
  handover.action = nullptr;
  if (action == nullptr) {
    if (running.mutexes != nullptr) [[unlikely]]
      ended_with_mutexes();
    slots.check(p->slot);
    // Restores the usual rounding mode, so that no other computation gets that of the one that has
    // ended.
    if (read_fp() != scheduler.usual_fp) [[unlikely]]
      write_fp(scheduler.usual_fp);
    if (p == spare_stacks.spare) return;
    retire(p);
    // Makes the next spare stack now, so that no message has to wait for it.
    if (spare_stacks.spare == nullptr) spare_stacks.spare = make_spare();
    return;
  }
  if (p == spare_stacks.spare) become_fiber(p, handover.origin);
  record_suspension(p);
  action(p, handover.context);
}

/// Sets `running` to the state of `p`, which runs next.
inline void take_up(piece* p) {
  running.youngest = p->youngest;
  running.base = p->base;
  running.holds = p->holds;
  running.static_inits = p->static_inits;
  if (p->mutexes != nullptr) [[unlikely]]
    running.mutexes = std::exchange(p->mutexes, nullptr);
  running.forks_before = counts.forks - (p->has_forks ? 1 : 0);
  begin_links(p->links);
  set_method_depth(p->methods);
  if (p->exceptions.caught != nullptr || p->exceptions.uncaught != 0) [[unlikely]] {
    if (is_kept(rule::exceptions_per_piece)) *running.exceptions = p->exceptions;
  }
  if (p->fp != scheduler.usual_fp) [[unlikely]]
    write_fp(p->fp);
  running_fiber = p;
}

/// The end of the frames, of `p` and its callers, that the address sanitizer may read: it walks the
/// stack whenever something is allocated. In checked mode the callers of frames that came from
/// another rank are inaccessible (filled() in migrate/piece_message.hpp).
inline std::uint64_t end_of_readable_frames(const piece* p) {
  const bool is_closed = SOJOURN_ASAN != 0 && checked() && slots.is_closed_above(p->slot, p->hi);
  return is_closed ? p->hi : slots.high(p->slot);
}

[[gnu::always_inline]] inline void resume(piece* p) {
  place(p);
  forget_frames(slots.low(p->slot) + stack_slots::guard_bytes, p->sp);
  take_up(p);
  ++counts.switches;
  announce_switch(slots.low(p->slot), end_of_readable_frames(p));
  switch_stack(&sojourn_scheduler_sp, p->sp, static_cast<long>(p->word));
  after_leaving();
}

#if SOJOURN_ASAN
struct entry {
  void (*fn)(void*);
  void* context;
};

/// The oldest frame of a stack. When it returns, the scheduler goes on, and finds no action.
SOJOURN_CALLS_PROGRAM void enter(void* e) {
  confirm_switch();
  entry copy = *static_cast<entry*>(e);
  copy.fn(copy.context);
  announce_switch(handover.scheduler_low, handover.scheduler_high);
}
#endif

[[gnu::always_inline]] inline void run_on(piece* p, void (*fn)(void*), void* context) {
  running.youngest = nullptr;
  running.base = reinterpret_cast<const void*>(p->hi);
  running.holds = nullptr;
  running.static_inits = 0;
  running.forks_before = counts.forks;
  begin_links({});
  set_method_depth(0);
  running_fiber = p;
#if SOJOURN_ASAN
  forget_frames(slots.low(p->slot) + stack_slots::guard_bytes, p->hi);
  entry e{fn, context};
  announce_switch(slots.low(p->slot), slots.high(p->slot));
  call_on_stack(&sojourn_scheduler_sp, p->hi, enter, &e);
#else
  call_on_stack(&sojourn_scheduler_sp, p->hi, fn, context);
#endif
  after_leaving();
}

}  // namespace

void attach_scheduler(std::uint64_t stack_low, std::uint64_t stack_high) {
  handover.scheduler_low = stack_low;
  handover.scheduler_high = stack_high;
  scheduler.usual_fp = read_fp();
#if defined(__x86_64__) && !defined(SOJOURN_NO_CHECKED)
  if (checked()) {
    marked_call* const each = sojourn_call_marked_checked;
    sojourn_marked_calls = {each, each, each};
  }
#endif
  running.exceptions = reinterpret_cast<exception_globals*>(abi::__cxa_get_globals());
}

void refuse_other_thread() {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  const bool on_scheduler_stack =
      here - handover.scheduler_low < handover.scheduler_high - handover.scheduler_low;
  // Before the rank's thread has begun, and after its end, no rank exists that another thread could
  // disturb.
  if (handover.scheduler_high == 0 || on_scheduler_stack || addresses.in_stacks(here)) return;
  if (in_forked_child()) return;
  die("a thread that the program has made itself uses Sojourn, which only the rank's own thread "
      "may do: hand what is to be done over to the rank with sojourn::post(), or do it in the body "
      "of run()");
}

void detach_scheduler() { handover.scheduler_high = 0; }

void waits_outside_fiber() {
  refuse_wait_of_forked_child();
  refuse_other_thread();
  on_fiber.waits_outside();
  die("only a fiber can wait, and none runs in a nonblocking handler, before run() or after it");
}

piece* suspend_running(std::uint64_t sp) {
  piece* p = running_piece();
  if (p == nullptr) [[unlikely]]
    waits_outside_fiber();
  running_fiber = nullptr;
  handover.sp = reinterpret_cast<void*>(sp);
  if (p == spare_stacks.spare) become_fiber(p, handover.origin);
  record_suspension(p);
  return p;
}

void go_on(piece* p) { take_up(p); }

void abandon_stack() {
  announce_switch(handover.scheduler_low, handover.scheduler_high);
  void* nowhere;
  switch_stack(&nowhere, reinterpret_cast<std::uint64_t>(sojourn_scheduler_sp), 1);
  __builtin_unreachable();
}

namespace {

[[gnu::always_inline]] inline int run_round(int most) {
  begin_round();
  int ran = 0;
  while (first_ready != nullptr && ran < most) {
    piece* p = take_ready();
    if (is_frozen(p)) [[unlikely]] {
      set_aside(p);
    } else if (must_not_be_placed(p)) [[unlikely]] {
      shut_out(p);
    } else if (on_fiber.copies.any_is_old && p->holds != nullptr && on_fiber.copies.refresh(p))
        [[unlikely]] {
      // It becomes ready again.
    } else if (p->departs_to == no_rank || !on_fiber.thread.departs(p)) [[likely]] {
      resume(p);
    }
    ++ran;
    if (round_is_over()) break;
  }
  return ran;
}

}  // namespace

int run_ready(int most) { return run_round(most); }

namespace {

[[gnu::always_inline]] inline handler_end run_on_spare(piece* p, void (*fn)(void*), void* context,
                                                       bool pinned, void* scope, bool goes_on) {
  p->pinned = pinned;
  p->shares_stack = false;
  p->scope = scope;
  scheduler.begun = p;
  run_on(p, fn, context);
  if (scheduler.begun == nullptr) return handler_end::fiber_ended;
  if (spare_stacks.spare == p) return handler_end::returned;
  // Resumed here, and not after the returns to the code that looks for messages: after another
  // stack has run, each return is mispredicted.
  if (goes_on && first_ready == p) run_ready(1);
  return handler_end::fiber_waits;
}

/// Runs a handler on a stack in which other pieces lie, or which has no guard page.
[[gnu::noinline]] handler_end run_on_used_spare(piece* p, void (*fn)(void*), void* context,
                                                bool pinned, void* scope, bool goes_on) {
  std::uint32_t slot = p->slot;
  clear_slot(slot, p->hi);
  const handler_end end = run_on_spare(p, fn, context, pinned, scope, goes_on);
  slots.check(slot);
  return end;
}

[[gnu::always_inline]] inline handler_end run_on_a_spare(void (*fn)(void*), void* context,
                                                         bool pinned, void* scope, bool goes_on) {
  piece* p = ready_spare();
  if (slots[p->slot].in_place != nullptr) {
    return run_on_used_spare(p, fn, context, pinned, scope, goes_on);
  }
  return run_on_spare(p, fn, context, pinned, scope, goes_on);
}

SOJOURN_CALLS_PROGRAM void run_task(void* context) {
  auto* t = static_cast<task*>(context);
  t->run(t);
}

/// Runs a task that refers to frames of another fiber: these are brought in place, and stay there
/// while the task runs (place()). They do not lie in the spare slot, because a fiber that has such
/// children shares its stack with nobody (attend_fork).
[[gnu::noinline]] handler_end run_by_reference(task* t) {
  piece* p = ready_spare();
  SOJOURN_CHECK(t->refers->refers_to->slot != p->slot,
                "a child would overwrite frames of its caller that it refers to");
  hand_over_referrer(t->refers, p);
  p->by_reference = true;
  place(p->refers_to);
  const handler_end end = run_on_a_spare(run_task, t, true, t->scope, false);
  if (end == handler_end::returned) {
    drop_referrer(p);
    p->by_reference = false;
  }
  return end;
}

[[gnu::always_inline]] inline int run_tasks(int most) {
  int ran = 0;
  for (; posted.first != nullptr && ran < most; ++ran) {
    task* t = posted.first;
    posted.first = t->next;
    if (t->refers != nullptr && must_not_be_placed(t->refers->refers_to)) [[unlikely]] {
      shut_out(t);
      continue;
    }
    void* scope = t->scope;
    handover.origin = {};
    const handler_end end = t->refers != nullptr ? run_by_reference(t)
                                                 : run_on_a_spare(run_task, t, true, scope, false);
    if (scope != nullptr && end == handler_end::returned) on_fiber.scope.left(scope);
  }
  return ran;
}

}  // namespace

handler_end run_handler(void (*fn)(void*), void* context, bool pinned, void* scope,
                        call_origin origin, bool goes_on) {
  handover.origin = origin;
  return run_on_a_spare(fn, context, pinned, scope, goes_on);
}

// All in one function, because each return on the scheduler's stack is mispredicted after another
// stack has run.
int run_what_is_here(int most) {
  int ran = 0;
  for (int tasks = 1; tasks != 0 && ran < most; ran += tasks) {
    ran += run_round(most);
    tasks = run_tasks(most);
  }
  return ran;
}

void* memory_for_short_tasks(std::size_t bytes) { return runtime_resource()->allocate(bytes); }

void count_in_scope(void* scope) { on_fiber.scope.joined(scope); }

void run_main(void (*fn)(void*), void* context) {
  piece* p = new_piece();
  p->slot = slots.main_slot();
  p->hi = slots.high(p->slot);
  p->pinned = true;
  run_on(p, fn, context);
}

void retire(piece* p) {
  SOJOURN_CHECK(p->referrers == nullptr,
                "a computation ended before the children that refer to its frames");
  drop_in_place(p);
  if (p == scheduler.begun) scheduler.begun = nullptr;
  if (p->is_thread_base()) on_fiber.thread.gone(p);
  if (p->refers_to != nullptr) drop_referrer(p);
  if (p->scope != nullptr) on_fiber.scope.left(p->scope);
  if (p->keeps_slot) release_stack(p);
  free_piece(p);
}

int called_by(const piece* p) {
  return p == spare_stacks.spare ? handover.origin.rank : p->called_by;
}

namespace {
std::exception_ptr held;
}

void hold_exception() { held = std::current_exception(); }
std::exception_ptr held_exception() { return std::exchange(held, nullptr); }

ticket_id running_result() { return running_piece()->result; }

void finish_piece() {
  if (running.mutexes != nullptr) [[unlikely]]
    ended_with_mutexes();
  handover.action = nullptr;
  abandon_stack();
}

}  // namespace sojourn::detail
