// SPDX-License-Identifier: Apache-2.0
#include "migrate/gate.hpp"

#include "fiber/cut.hpp"
#include "fiber/rules.hpp"
#include "fiber/scheduler.hpp"
#include "message/dispatcher.hpp"
#include "sojourn/detail/waiters.hpp"

namespace sojourn::detail {

namespace {

constexpr stay_reason in_flight{thread_refusal::handles_exception, "an exception is in flight"};
constexpr stay_reason caller_handles{thread_refusal::handles_exception,
                                     "a caller that moves too handles an exception"};
constexpr stay_reason fork_of_method{thread_refusal::in_method,
                                     "a method of an object of this rank is running"};
constexpr stay_reason in_method{thread_refusal::in_method,
                                "a method whose object is here is running in a frame that moves"};
constexpr stay_reason must_stay{thread_refusal::stays, "a `stay` or an open finish holds a frame"};
constexpr stay_reason holds_mutex{thread_refusal::holds_lock, "a mutex is held"};
constexpr stay_reason initialises{thread_refusal::initialises,
                                  "a static variable is being initialised"};
constexpr stay_reason referred_to{thread_refusal::stays,
                                  "an unfinished child refers to a frame that moves"};
constexpr stay_reason pinned{thread_refusal::pinned, "it was started with thread_options::pinned"};
constexpr stay_reason refers{thread_refusal::stays, "it refers to frames of its rank"};
constexpr stay_reason no_weight{thread_refusal::stays,
                                "the finish that it belongs to must be told first"};

/// Stands for the end of a piece, where there is no mark.
const boundary no_mark{};

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

/// What the gate must know of a piece. It is in the piece's descriptor or, while the piece runs, in
/// `running`.
struct piece_state {
  const piece* of;
  const hold* holds;
  const mutex_state* mutexes;
  unsigned static_inits;
  std::uint32_t methods;  ///< Open methods that are younger than every mark.
};
piece_state suspended(const piece* p) {
  return {p, p->holds, p->mutexes, p->static_inits, p->methods};
}
piece_state running_now() {
  return {running_piece(), running.holds, running.mutexes, running.static_inits, method_depth()};
}

/// The frames of one piece between two marks. If there is no `younger`, they begin with the
/// youngest frame; if there is no `older`, they extend to the end of the piece.
struct stretch_at_gate {
  const boundary& younger;
  const boundary& older;

  bool is_below_older(const hold* h, const piece* p) const {
    return address_of(h) < (older ? older.end : p->hi);
  }
  bool has(const hold* h) const { return !younger || address_of(h) >= younger.end; }
  /// True when these frames have locked the mutex, or the mutex lies in them.
  bool has(const mutex_state& m, const piece* p) const {
    const bool is_locked_here =
        (!older || held_below(m, older.at)) && (!younger || !held_below(m, younger.at));
    const std::uint64_t at = address_of(&m);
    const std::uint64_t end = older ? older.end : p->hi;
    return is_locked_here || (at < end && at >= (younger ? younger.end : p->sp));
  }
  bool has_frames_of(const referrer* child) const {
    return (!older || refers_below(child, older)) && (!younger || !refers_below(child, younger));
  }
};

/// Checks the reasons that need no look at the frames, nor at the marks between the ends of the
/// stretch.
const stay_reason* reason_beyond_marks(const piece_state& state, const stretch_at_gate& stretch) {
  if ((stretch.younger ? methods_at(stretch.younger) : state.methods) != 0) return &in_method;
  for (const hold* h = state.holds; h != nullptr && stretch.is_below_older(h, state.of);
       h = h->outer) {
    if (stretch.has(h)) return &must_stay;
  }
  if (state.static_inits != 0) return &initialises;
  for (const mutex_state* m = state.mutexes; m != nullptr; m = m->before) {
    if (stretch.has(*m, state.of)) return &holds_mutex;
  }
  if (is_kept(rule::by_reference_stays)) {
    for (const referrer* child = state.of->referrers; child != nullptr;
         child = child->next_referrer) {
      if (stretch.has_frames_of(child)) return &referred_to;
    }
  }
  return nullptr;
}

/// True when a mark of `p` that is younger than `oldest` was opened in a method.
bool has_mark_in_method(const piece* p, const boundary& oldest) {
  if (!p->marks_hold_methods || !oldest) return p->marks_hold_methods;
  for (const mark* m = p->youngest; m != nullptr && address_of(m) < oldest.at; m = m->outer) {
    if (method_depth(*m) != 0) return true;
  }
  return false;
}

bool any(const exception_globals& exceptions) {
  return exceptions.caught != nullptr || exceptions.uncaught != 0;
}
bool saved_exceptions(const boundary& b) {
  return b.open != nullptr && (b.open->events & mark::saved_exceptions) != 0;
}

/// Whether the piece has a fork whose child must stay; true also when that cannot be found out. To
/// be asked only when `has_forks`. Forks are found by walking the frames, which must be in place
/// for that. They are in place in most pieces that wait, and in a piece that has just been
/// suspended to be moved. A piece whose frames are not in place is assumed to have such a fork.
bool may_have_pinned_fork(const piece* p) {
  if (!frames_are_in_place(p)) return true;
  for (boundaries each(p); each; ++each) {
    if (each->kind == mark_kind::fork_pinned) return true;
  }
  return false;
}

}  // namespace

const stay_reason* reason_to_stay(const piece* p, const boundary& oldest) {
  const std::uint64_t until = oldest ? oldest.at : p->hi;
  if (any(p->exceptions) && is_kept(rule::gate)) return &in_flight;
  if (p->marks_hold_exceptions || p->has_pinned_fork || p->has_forks) {
    for (boundaries each(p); each && each->at < until; ++each) {
      if (saved_exceptions(*each) && is_kept(rule::gate)) return &caller_handles;
      if (each->kind == mark_kind::fork_pinned) return &fork_of_method;
    }
  }
  if (has_mark_in_method(p, oldest)) return &in_method;
  return reason_beyond_marks(suspended(p), {no_mark, oldest});
}

const stay_reason* reason_whole_stays(const piece* p) {
  if (p->pinned) return &pinned;
  if (p->by_reference) return &refers;
  if (any(p->exceptions)) return &in_flight;
  if (p->marks_hold_exceptions) return &caller_handles;
  if (p->has_pinned_fork) return &fork_of_method;
  if (p->scope != nullptr && on_dispatch.scopes.available(p->scope) == 0) return &no_weight;
  if (p->has_forks && may_have_pinned_fork(p)) return &fork_of_method;
  if (p->marks_hold_methods) return &in_method;
  return reason_beyond_marks(suspended(p), {no_mark, no_mark});
}

const stay_reason* reason_stretch_stays(const boundary& younger, const boundary& older) {
  if (saved_exceptions(younger)) return &caller_handles;
  return reason_beyond_marks(running_now(), {younger, older});
}

const stay_reason* reason_running_stays() {
  if (any(*running.exceptions)) return &in_flight;
  return reason_beyond_marks(running_now(), {no_mark, no_mark});
}

}  // namespace sojourn::detail
