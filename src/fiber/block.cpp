// SPDX-License-Identifier: Apache-2.0
#include "fiber/block.hpp"

#include <utility>

#include "fiber/cut.hpp"
#include "fiber/fork_handler.hpp"
#include "fiber/fork_links.hpp"
#include "fiber/language_locks.hpp"
#include "fiber/rules.hpp"
#include "fiber/spare_stacks.hpp"
#include "fiber/stack_copy.hpp"
#include "fiber/watched.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/tasks.hpp"

namespace sojourn::detail {

std::atomic<void (*)()> at_next_turn{nullptr};

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
  piece* younger = cut(left, b, cut_after_walk(b, left->sp, left->links.by_tables));
  younger->has_forks = false;  // it was cut at the youngest fork
  make_ready_first(left, resumed::anywhere);
  return younger;
}

namespace {

/// Cuts the running piece `p`, whose youngest byte is at `sp`, at its youngest fork `b`. The effect
/// is the same as suspending `p`, calling cut() and taking up the older side, but the older side's
/// state stays in `running`, without a detour through its descriptor.
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
  if (running.static_inits != 0) [[unlikely]]
    running.static_inits -= younger->static_inits = divide_initialisations(p, younger);
  if (recursive_mutexes_held != 0) [[unlikely]]
    divide_recursive_mutexes(p, younger);
  younger->links = links_of_running();
  younger->methods = method_depth();
  methods_were_suspended |= younger->methods;
  set_method_depth(methods_at(b));
  if (running.exceptions->caught != nullptr || running.exceptions->uncaught != 0) [[unlikely]] {
    if (is_kept(rule::exceptions_per_piece)) {
      younger->exceptions = std::exchange(*running.exceptions, {});
    }
  }
  younger->fp = read_fp();
  const fp_control fp = fp_of_mark(b, younger->fp);
  if (fp != younger->fp) [[unlikely]]
    write_fp(fp);
  return younger;
}

/// Not inlined, because in a caller that never returns the sanitizer would keep its notes of this
/// function's locals.
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
  switch_stack(&nowhere, sp, static_cast<long>(resumed::anywhere));
  __builtin_unreachable();
}

/// Suspends what is left of the running piece `p` at `b`, a mark in the tables. It runs first after
/// this round.
void suspend_older(piece* p, const boundary& b, const handler_entry& entry, ticket_id result) {
  running_fiber = p;
  suspend_running(b.end);
  give_handler_context(p, b, entry, result);
  make_ready_first(p, resumed::anywhere);
}

/// The same as go_on_at_fork(), for a fork that a link leads to.
[[noreturn]] void go_on_at_link(piece* p, fork_link* link, leave_action act, std::uint64_t context,
                                std::uint64_t sp) {
  const boundary b = boundary_of(link);
  bool has_older = !is_oldest(link);
  std::uint64_t outer = 0;
  if (is_by_reference(b.kind)) {
    outer = end_of_next(p, link);
    if (outer == 0) {
      boundaries each(p, sp);
      while (each && each->at < b.at) ++each;
      outer = each.end_of_next();
      has_older = !each.knows_of_none();
    }
  }
  if (p == spare_stacks.spare) become_fiber(p, handover.origin);
  running_fiber = nullptr;
  piece* younger = cut_running(p, b, outer, sp);
  sojourn_fork_links.youngest = std::exchange(link->outer, 0);
  if (!has_older) {
    running.forks_before = counts.forks;
    begin_links({});
  }
  handler_entry entry = separate(b);
  entry.how_cut = (b.end - sp) | found_by_link;
  ++counts.forks_blocked;
  const ticket_id result = younger->result;
  const bool has_turn = !ready_queue.round_ends;
  if (!has_turn) suspend_older(p, b, entry, result);
  act(younger, reinterpret_cast<void*>(context));
  make_image(younger);
  if (!has_turn) abandon_stack();
  go_on_older(p, b, entry, result);
}

/// Runs below the frames that wait: cuts them off at their youngest fork and resumes the older
/// side. If there is no fork, or messages are due, the whole piece leaves for the scheduler.
long go_on_at_fork(std::uint64_t action, std::uint64_t context, std::uint64_t sp) {
  // One wait in so many goes to the scheduler, which looks for messages, because other fibers wait
  // for these.
  constexpr unsigned once_in = 16;
  static unsigned waits = 0;
  piece* p = running_piece();
  const auto act = reinterpret_cast<leave_action>(action);
  fork_link* const link = youngest_link(p);
  if (link != nullptr && (++waits % once_in == 0)) ready_queue.round_ends = true;
  if (link != nullptr) go_on_at_link(p, link, act, context, sp);
  boundaries each(p, sp);
  const boundary& b = go_to_fork(each);
  if (b && ++waits % once_in == 0) ready_queue.round_ends = true;
  if (!b || ready_queue.round_ends) {
    p = suspend_running(sp);
    p->has_forks = !each.knows_of_none();
    act(p, reinterpret_cast<void*>(context));
    abandon_stack();
  }
  if (p == spare_stacks.spare) become_fiber(p, handover.origin);
  running_fiber = nullptr;
  const std::uint64_t outer = is_by_reference(b.kind) ? each.end_of_next() : 0;
  const cut_of_child how = cut_after_walk(b, sp, forks_by_tables());
  piece* younger = cut_running(p, b, outer, sp);
  forget_fork_links();
  if (each.knows_of_none()) {
    running.forks_before = counts.forks;
    begin_links({});
  }
  handler_entry entry = b.open == nullptr ? separate(b) : handler_entry{};
  entry.how_cut = how;
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

/// True when the running piece has to leave its stack as a whole: fibers are being frozen, other
/// ranks read the slot, its canary must be checked, or the piece itself is to move to another rank.
bool stack_is_wanted(const piece* p) {
  return ready_queue.stands != nullptr || slots[p->slot].being_read != 0 ||
         slots[p->slot].unguarded || p->departs_to != no_rank;
}

[[gnu::noinline]] resumed leave_whole(leave_action action, void* context) {
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

namespace {

long find_fork_below(std::uint64_t variable, std::uint64_t, std::uint64_t sp) {
  return boundaries(sp, variable) ? 1 : 0;
}

}  // namespace

bool has_fork_below(const void* variable) {
  const piece* p = running_piece();
  if (p == nullptr || !may_have_forks()) return false;
  const auto at = reinterpret_cast<std::uint64_t>(variable);
  if (const fork_link* link = youngest_link(p)) return link->at() <= at;
  return sojourn_capture(find_fork_below, at, 0) != 0;
}

std::uint64_t find_youngest_mark() {
  if (const piece* p = running_piece()) {
    if (const fork_link* link = youngest_link(p)) return link->at();
    if (const boundary b = youngest_boundary(); b && b.open == nullptr) return b.at;
  }
  return reinterpret_cast<std::uint64_t>(running.youngest);
}

// Ends with a jump to sojourn_capture, so that the image of the frames that leave contains no frame
// of this function.
resumed leave_under_mark(leave_action action, void* context) {
  const piece* p = running_piece();
  if (p == nullptr || (!may_have_forks() && !has_marked_fork(p)) || stack_is_wanted(p) ||
      running.mutexes != nullptr || (ready_queue.round_ends && youngest_link(p) == nullptr)) {
    return leave_whole(action, context);
  }
  return resumed{capture_stack(go_on_at_fork, reinterpret_cast<std::uint64_t>(action),
                               reinterpret_cast<std::uint64_t>(context))};
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
  if (p == spare_stacks.spare) become_fiber(p, handover.origin);
  running_fiber = nullptr;
  const boundary b = boundary_of(running.youngest);
  const std::uint64_t outer = is_by_reference(b.kind) ? end_of_outer(boundaries(p, sp), b) : 0;
  // All mutexes are held by older frames, because the younger ones have not begun.
  piece* younger = cut_running(p, b, outer, sp);
  forget_fork_links();
  if (!action(younger, context)) make_image(younger);
  go_on_older(p, b, {}, 0);
}

bool someone_goes_on_if_blocked() {
  // In checked mode, if something is watched, the answer is true, so that the wait suspends and is
  // checked there. This is asked at every wait whose answer may come in place, so it looks at links
  // first: to look for forks in the tables would take longer than the rest of such a wait.
  const piece* p = running_piece();
  const bool may_be_cut = p != nullptr && (may_have_forks() || has_marked_fork(p));
  return running.watched != 0 ||
         (may_be_cut && (youngest_link(p) != nullptr || youngest_open_fork()));
}

void give_turn() {
  ++counts.yields;
  if (at_next_turn.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    at_next_turn.exchange(nullptr)();
  leave_to_wait([](piece* left, void*) { make_ready_next_round(block(left), resumed::anywhere); },
                nullptr);
}

void refer_to_caller(referrer& tie) {
  const boundary youngest = youngest_boundary();
  tie.refers_under = youngest ? youngest.end : ~std::uint64_t{0};
  add_referrer(running_piece(), &tie);
}

}  // namespace sojourn::detail
