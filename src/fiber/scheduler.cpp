// SPDX-License-Identifier: Apache-2.0
#include "fiber/scheduler.hpp"

#include <cxxabi.h>
#include <unwind.h>

#include <exception>
#include <utility>

#include "base/check.hpp"
#include "fiber/spare_stacks.hpp"
#include "fiber/stack_copy.hpp"
#include "fiber/waiters.hpp"
#include "fiber/watched.hpp"
#include "memory/runtime_resource.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/detail/thrown.hpp"

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
fiber_view* running_fiber = nullptr;
task_queue posted;
std::atomic<void (*)()> at_next_turn{nullptr};
void (*on_child_throws)(const std::type_info&, void*) = [](const std::type_info&, void*) {};
void (*on_wait_outside_fiber)() = [] {};

namespace {

struct scheduler_state {
  piece* begun = nullptr;  // what run_on_spare began, until it is retired
  fp_control usual_fp = {};
} scheduler;

fp_control read_fp() {
  fp_control fp{0, 0};
#if defined(__x86_64__)
  std::uint16_t x87;
  asm volatile("stmxcsr %0" : "=m"(fp.mxcsr));
  asm volatile("fnstcw %0" : "=m"(x87));
  fp.mxcsr &= ~0x3fu;  // sticky flags: not state that a callee preserves
  fp.x87 = x87;
#elif defined(__aarch64__)
  std::uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  fp.mxcsr = static_cast<std::uint32_t>(fpcr);
#endif
  return fp;
}

// A reload costs tens of nanoseconds: only on change.
[[gnu::noinline]] void write_fp(fp_control fp) {
#if defined(__x86_64__)
  std::uint16_t x87 = static_cast<std::uint16_t>(fp.x87);
  asm volatile("ldmxcsr %0" : : "m"(fp.mxcsr));
  asm volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
  std::uint64_t fpcr = fp.mxcsr;
  asm volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

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
  if (!broken.exceptions_per_piece) {
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
  p->word = 0;
  p->fp = read_fp();
  if (p->fp != scheduler.usual_fp) [[unlikely]]
    write_fp(scheduler.usual_fp);
}

/// Back on the scheduler's stack after a stack left.
[[gnu::always_inline]] inline void after_leaving() {
  confirm_switch();
  piece* p = running_piece();
  if (p == nullptr) return;  // an abandoned stack
  leave_action action = handover.action;
  running_fiber = nullptr;
  handover.action = nullptr;
  if (action == nullptr) {
    if (running.mutexes != nullptr) [[unlikely]]
      ended_with_mutex();
    slots.check(p->slot);
    // If the computation ended with another rounding mode, nobody else gets it.
    if (read_fp() != scheduler.usual_fp) [[unlikely]]
      write_fp(scheduler.usual_fp);
    if (p == spare_stacks.spare) return;
    retire(p);
    // Made now, and not when a message waits for it.
    if (spare_stacks.spare == nullptr) spare_stacks.spare = make_spare();
    return;
  }
  if (p == spare_stacks.spare) become_fiber(p, handover.called_by);
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
  set_method_depth(p->methods);
  if (p->exceptions.caught != nullptr || p->exceptions.uncaught != 0) [[unlikely]] {
    if (!broken.exceptions_per_piece) *running.exceptions = p->exceptions;
  }
  if (p->fp != scheduler.usual_fp) [[unlikely]]
    write_fp(p->fp);
  running_fiber = p;
}

[[gnu::always_inline]] inline void resume(piece* p) {
  place(p);
  forget_frames(slots.low(p->slot) + stack_slots::guard_bytes, p->sp);
  take_up(p);
  ++counts.switches;
  announce_switch(slots.low(p->slot), slots.high(p->slot));
  switch_stack(&sojourn_scheduler_sp, p->sp, p->word);
  after_leaving();
}

#if SOJOURN_ASAN
struct entry {
  void (*fn)(void*);
  void* context;
};

/// Oldest frame of a stack. Its return goes to the scheduler, which then finds no action.
void enter(void* e) {
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

void waits_outside_fiber() {
  on_wait_outside_fiber();
  die("a wait outside of any fiber: in a nonblocking handler, before run() or after it");
}

piece* suspend_running(std::uint64_t sp) {
  piece* p = running_piece();
  if (p == nullptr) [[unlikely]]
    waits_outside_fiber();
  running_fiber = nullptr;
  handover.sp = reinterpret_cast<void*>(sp);
  if (p == spare_stacks.spare) become_fiber(p, handover.called_by);
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

piece* block_below_mark(piece* left) {
  boundaries each(left);
  const boundary b = go_to_fork(each);
  if (running.watched != 0) [[unlikely]]
    check_watched(left->sp, b ? b.end : left->hi, "waits");
  if (!b) {
    left->has_forks = !each.knows_of_none();
    return left;
  }
  ++counts.forks_blocked;
  piece* younger = cut(left, b);
  younger->has_forks = false;  // this was the youngest
  make_ready_first(left, 1);
  return younger;
}

namespace {

/// Cuts the running piece `p`, whose youngest byte is at `sp`, at its youngest fork `b`. Has the
/// effect of suspending `p`, cut() and taking up the older side, but keeps the older side's state
/// in `running`, without the detour through its descriptor.
piece* cut_running(piece* p, const boundary& b, std::uint64_t outer, std::uint64_t sp) {
  piece* younger = divide(p, b, outer, sp, running.holds);
  mark* const older = older_mark(p, b, running.youngest);
  for (mark* each = running.youngest;
       each != nullptr && reinterpret_cast<std::uint64_t>(each) < b.at; each = each->outer) {
    younger->youngest = running.youngest;
    note_mark(*each, *younger);
  }
  running.youngest = older;
  running.forks_before = counts.forks - (may_have_forks() ? 1 : 0);
  younger->static_inits = running.static_inits;
  younger->methods = method_depth();
  set_method_depth(methods_at(b));
  if (running.exceptions->caught != nullptr || running.exceptions->uncaught != 0) [[unlikely]] {
    if (!broken.exceptions_per_piece) {
      younger->exceptions = std::exchange(*running.exceptions, {});
    }
  }
  younger->fp = read_fp();
  const fp_control fp = fp_of_mark(b, younger->fp);
  if (fp != younger->fp) [[unlikely]]
    write_fp(fp);
  return younger;
}

/// Not inlined: in a caller that never returns, the sanitizer would remember this function's
/// locals.
[[gnu::noinline]] void forget_free_frames(const piece* p, std::uint64_t sp) {
  forget_frames(slots.low(p->slot) + stack_slots::guard_bytes, sp);
}

/// Resumes what is left of `p`, from below the frames that were cut off `p` at `b`.
[[noreturn, gnu::always_inline]] inline void go_on_older(piece* p, const boundary& b,
                                                         const handler_entry& entry,
                                                         ticket_id result) {
  running_fiber = p;
  ++counts.switches;
  const std::uint64_t sp = b.end;
  forget_free_frames(p, sp);
  announce_switch(slots.low(p->slot), slots.high(p->slot));
  if (b.open == nullptr) enter_handler(entry, result);
  void* nowhere;
  switch_stack(&nowhere, sp, 1);
  __builtin_unreachable();
}

/// Runs below the frames that wait: cuts them off at their youngest fork and resumes the older
/// side. If there is no fork, or messages are due, the whole piece leaves for the scheduler.
long go_on_at_fork(std::uint64_t action, std::uint64_t context, std::uint64_t sp) {
  // One wait in so many goes to the scheduler, which looks for messages: others wait for these.
  constexpr unsigned once_in = 16;
  static unsigned waits = 0;
  piece* p = running_piece();
  const auto act = reinterpret_cast<leave_action>(action);
  boundaries each(p, sp);
  const boundary& b = go_to_fork(each);
  if (b && ++waits % once_in == 0) ready_queue.round_ends = true;
  if (!b || ready_queue.round_ends) {
    p = suspend_running(sp);
    p->has_forks = !each.knows_of_none();
    act(p, reinterpret_cast<void*>(context));
    abandon_stack();
  }
  if (p == spare_stacks.spare) become_fiber(p, handover.called_by);
  running_fiber = nullptr;
  const std::uint64_t outer = is_by_reference(b.kind) ? each.end_of_next() : 0;
  piece* younger = cut_running(p, b, outer, sp);
  if (each.knows_of_none()) running.forks_before = counts.forks;
  const handler_entry entry = b.open == nullptr ? separate(b) : handler_entry{};
  const ticket_id result = younger->result;
  ++counts.forks_blocked;
  act(younger, reinterpret_cast<void*>(context));
  make_image(younger);
  go_on_older(p, b, entry, result);
}

/// True when a fork is open in the running piece whose mark lies in a frame.
bool has_marked_fork(const piece* p) {
  for (const mark* m = running.youngest; m != nullptr && reinterpret_cast<std::uint64_t>(m) < p->hi;
       m = m->outer) {
    if (is_fork(m->kind)) return true;
  }
  return false;
}

/// True when the running piece has to leave its stack: fibers are being frozen, other ranks read
/// the slot, its canary must be checked, or the piece itself is to move to another rank.
bool stack_is_wanted(const piece* p) {
  return ready_queue.stands != nullptr || slots[p->slot].being_read != 0 ||
         slots[p->slot].unguarded || p->departs_to != no_rank;
}

[[gnu::noinline]] long leave_whole(leave_action action, void* context) {
  return leave(action, context);
}

}  // namespace

namespace {

/// What find_youngest has found; valid while the frames that asked are open.
boundary asked_for;

long find_youngest(std::uint64_t of_fork, std::uint64_t, std::uint64_t sp) {
  boundaries each(running_piece(), sp);
  asked_for = of_fork != 0 ? go_to_fork(each) : *each;
  if (each.knows_of_none()) running.forks_before = counts.forks;
  return 0;
}

}  // namespace

boundary youngest_open_fork() {
  if (running_piece() == nullptr) return {};
  sojourn_capture(find_youngest, 1, 0);
  return asked_for;
}

boundary youngest_boundary() {
  sojourn_capture(find_youngest, 0, 0);
  return asked_for;
}

std::uint64_t find_youngest_mark() {
  if (running_piece() != nullptr) {
    if (const boundary b = youngest_boundary(); b && b.open == nullptr) return b.at;
  }
  return reinterpret_cast<std::uint64_t>(running.youngest);
}

// Ends with a jump to sojourn_capture, so that the image of what leaves has no frame of this
// function.
long leave_under_mark(leave_action action, void* context) {
  const piece* p = running_piece();
  if (p == nullptr || (!may_have_forks() && !has_marked_fork(p)) || ready_queue.round_ends ||
      stack_is_wanted(p) || running.mutexes != nullptr) {
    return leave_whole(action, context);
  }
  return capture_stack(go_on_at_fork, reinterpret_cast<std::uint64_t>(action),
                       reinterpret_cast<std::uint64_t>(context));
}

bool younger_may_go() {
  const piece* p = running_piece();
  return p != nullptr && running.youngest != nullptr &&
         reinterpret_cast<std::uint64_t>(running.youngest) == youngest_open_fork().at &&
         running.static_inits == 0 && running.watched == 0 && !stack_is_wanted(p);
}

void go_on_without_younger(bool (*action)(piece* younger, void* context), void* context,
                           std::uint64_t sp) {
  piece* p = running_piece();
  if (p == spare_stacks.spare) become_fiber(p, handover.called_by);
  running_fiber = nullptr;
  const boundary b = boundary_of(running.youngest);
  const std::uint64_t outer = is_by_reference(b.kind) ? end_of_outer(boundaries(p, sp), b) : 0;
  // All mutexes are held by older frames, because the younger ones have not begun.
  piece* younger = cut_running(p, b, outer, sp);
  if (!action(younger, context)) make_image(younger);
  go_on_older(p, b, {}, 0);
}

bool someone_goes_on_if_blocked() {
  // In checked mode, something is watched: the wait is then checked where it suspends, so let it.
  // Asked at every wait whose answer may come in place. Looking for forks in the tables would take
  // longer than the rest of such a wait.
  const piece* p = running_piece();
  const bool may_be_cut = p != nullptr && (may_have_forks() || has_marked_fork(p));
  return running.watched != 0 || (may_be_cut && youngest_open_fork());
}

void give_turn() {
  ++counts.yields;
  if (at_next_turn.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    at_next_turn.exchange(nullptr)();
  leave_to_wait([](piece* left, void*) { make_ready_next_round(block(left), 1); }, nullptr);
}

namespace {

[[gnu::always_inline]] inline int run_round(int most) {
  begin_round();
  int ran = 0;
  while (first_ready != nullptr && ran < most) {
    piece* p = take_ready();
    if (is_frozen(p)) [[unlikely]] {
      set_aside(p);
    } else if (slots[p->slot].being_read != 0) [[unlikely]] {
      shut_out(p);
    } else if (p->departs_to == no_rank || !on_thread.departs(p)) [[likely]] {
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
  // Resumed here, before the returns to whoever polls: after another stack has run, each return is
  // mispredicted.
  if (goes_on && first_ready == p) run_ready(1);
  return handler_end::fiber_waits;
}

/// For a stack in which other pieces lie, or which has no guard page.
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

void run_task(void* context) {
  auto* t = static_cast<task*>(context);
  t->run(t);
}

/// Runs a task that refers to frames of another fiber: they are brought in place, and stay there
/// while the task runs (place()). They do not lie in the spare slot: a fiber that has such children
/// shares its stack with nobody (attend_fork).
[[gnu::noinline]] handler_end run_by_reference(task* t) {
  piece* p = ready_spare();
  SOJOURN_CHECK(t->refers->refers_to->slot != p->slot,
                "a child would run in the place of the frames that it refers to");
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
    void* scope = t->scope;
    handover.called_by = no_rank;
    const handler_end end = t->refers != nullptr ? run_by_reference(t)
                                                 : run_on_a_spare(run_task, t, true, scope, false);
    if (scope != nullptr && end == handler_end::returned) on_scope.left(scope);
  }
  return ran;
}

}  // namespace

handler_end run_handler(void (*fn)(void*), void* context, bool pinned, void* scope, bool goes_on) {
  return run_on_a_spare(fn, context, pinned, scope, goes_on);
}

// In one function: each return on the scheduler's stack is mispredicted after another stack has
// run.
int run_what_is_here(int most) {
  int ran = 0;
  for (int tasks = 1; tasks != 0 && ran < most; ran += tasks) {
    ran += run_round(most);
    tasks = run_tasks(most);
  }
  return ran;
}

void* memory_for_short_tasks(std::size_t bytes) { return runtime_resource()->allocate(bytes); }

void refer_to_caller(referrer& tie) {
  const boundary youngest = youngest_boundary();
  tie.refers_under = youngest ? youngest.end : ~std::uint64_t{0};
  add_referrer(running_piece(), &tie);
}

void count_in_scope(void* scope) { on_scope.joined(scope); }

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
  if (p->is_thread_base()) on_thread.gone(p);
  if (p->refers_to != nullptr) drop_referrer(p);
  if (p->scope != nullptr) on_scope.left(p->scope);
  if (p->keeps_slot) release_stack(p);
  free_piece(p);
}

int called_by(const piece* p) {
  return p == spare_stacks.spare ? handover.called_by : p->called_by;
}

namespace {
std::exception_ptr held;
}

void hold_exception() { held = std::current_exception(); }
std::exception_ptr held_exception() { return std::exchange(held, nullptr); }

void resumed_after_cut() { confirm_switch(); }

void handler_goes_on(std::uint32_t fp) {
  confirm_switch();
  const fp_control now = read_fp();
  const fp_control then = fp_with_word(fp, now);
  if (then != now) [[unlikely]]
    write_fp(then);
}

void save_for_caller(mark& m) {
  if (method_depth(m) != 0) {
    set_method_depth(0);
    m.events |= mark::saved_methods;
  }
  if (broken.exceptions_at_marks ||
      (running.exceptions->caught == nullptr && running.exceptions->uncaught == 0)) {
    return;
  }
  m.caught = running.exceptions->caught;
  m.uncaught = running.exceptions->uncaught;
  *running.exceptions = {};
  m.events |= mark::saved_exceptions;
}

void restore_for_caller(mark& m) {
  if ((m.events & mark::saved_methods) != 0) set_method_depth(method_depth(m));
  if ((m.events & mark::saved_exceptions) != 0) *running.exceptions = {m.caught, m.uncaught};
  m.events &= static_cast<std::uint8_t>(~(mark::saved_exceptions | mark::saved_methods));
}

namespace {

/// Ends the running piece, a child that was cut off its caller and has returned `word` or `real`.
[[noreturn]] void child_ends_by(std::uint64_t word, std::uint64_t real) {
  const piece* p = running_piece();
  send_result(p->result, p->returns.is_real ? &real : &word, p->returns.bytes);
  finish_piece();
}

void child_throws(_Unwind_Exception* exception) {
  if (const std::type_info* type = thrown_type(exception)) on_child_throws(*type, exception + 1);
}

[[noreturn]] void child_ends_by_exception(void* exception) {
  const ticket_id result = running_result();
  abi::__cxa_begin_catch(exception);
  {
    const std::exception_ptr thrown = caught_past();
    abi::__cxa_end_catch();
    send_exception(result, thrown);
  }
  finish_piece();
}

}  // namespace

ticket_id running_result() { return running_piece()->result; }

void finish_piece() {
  if (running.mutexes != nullptr) [[unlikely]]
    ended_with_mutex();
  handover.action = nullptr;
  abandon_stack();
}

}  // namespace sojourn::detail

extern "C" {
[[gnu::used, noreturn]] void sojourn_child_returned(std::uint64_t word, std::uint64_t real) {
  sojourn::detail::child_ends_by(word, real);
}
[[gnu::used, noreturn]] void sojourn_child_caught(void* exception) {
  sojourn::detail::child_ends_by_exception(exception);
}
extern const char sojourn_child_threw[];
/// Catches every exception that leaves a child that was cut off its caller.
[[gnu::used]] _Unwind_Reason_Code sojourn_child_personality(int, _Unwind_Action actions,
                                                            _Unwind_Exception_Class,
                                                            _Unwind_Exception* exception,
                                                            _Unwind_Context* context) {
  if ((actions & _UA_SEARCH_PHASE) != 0) {
    sojourn::detail::child_throws(exception);
    return _URC_HANDLER_FOUND;
  }
  _Unwind_SetGR(context, 0, reinterpret_cast<_Unwind_Word>(exception));
  _Unwind_SetIP(context, reinterpret_cast<_Unwind_Word>(sojourn_child_threw));
  return _URC_INSTALL_CONTEXT;
}
}
