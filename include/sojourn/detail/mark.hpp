// SPDX-License-Identifier: Apache-2.0
// Marks: resumable boundaries in a stack. A marked call saves where the older side can go on, and
// then calls. When the callee returns, the mark is simply dropped. When the younger side has been
// cut off, the older side is resumed at the mark instead, and gets the result by a ticket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "sojourn/detail/registers.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

struct mark;
/// Runs the younger side. Returns its result when that is a number or an address (in_register).
using inner_function = std::uint64_t(mark*) noexcept;
/// Returns what `inner` returns; after a cut, the value it returns has no meaning.
using marked_call = std::uint64_t(mark* m, inner_function* inner) noexcept;

}  // namespace sojourn::detail

extern "C" {
/// Save in m->sp where the older side can be resumed, and call inner(m) (fiber/switch_*.S). The
/// first is for activations; it is no C function, only `call_marked` may call it. The last is for
/// forks whose younger frames never leave without the older ones.
sojourn::detail::marked_call sojourn_call_marked, sojourn_fork_marked, sojourn_fork_marked_to_stay;
#if defined(__x86_64__) && !defined(SOJOURN_NO_CHECKED)
#define SOJOURN_CALL_MARKED "call *sojourn_marked_calls(%%rip)"
/// The marked calls in use: checked mode has another one.
extern struct sojourn_marked_calls_t {
  sojourn::detail::marked_call* activation;
  sojourn::detail::marked_call* fork;
  sojourn::detail::marked_call* fork_to_stay;
} sojourn_marked_calls;
#elif defined(__x86_64__)
#define SOJOURN_CALL_MARKED "call sojourn_call_marked"
#endif
}

namespace sojourn::detail {

enum class mark_kind : std::uint8_t {
  activation,               ///< The older side waits for the result; may migrate.
  activation_by_reference,  ///< The same, but the callee refers to older frames, and so stays.
  fork,                     ///< The older side goes on when the younger blocks; may migrate.
  fork_by_reference,        ///< The same, but the callee refers to older frames.
  fork_pinned,              ///< A fork whose callee refers to things of this rank.
};

constexpr bool is_fork(mark_kind k) {
  return k == mark_kind::fork || k == mark_kind::fork_by_reference || k == mark_kind::fork_pinned;
}
constexpr bool may_travel(mark_kind k) {
  return k == mark_kind::activation || k == mark_kind::fork;
}
constexpr bool is_by_reference(mark_kind k) {
  return k == mark_kind::activation_by_reference || k == mark_kind::fork_by_reference;
}

/// In which register a function returns its result, by the ABI.
struct child_result {
  std::uint8_t bytes = 0;  ///< 0: nothing.
  bool is_real = false;    ///< In a floating-point register.
  friend bool operator==(child_result, child_result) = default;
};

/// Nobody throws this. A handler for it says that the call in its `try` block is a fork. If the
/// callee is cut off, the caller goes on in that handler, with the ticket of the callee's result.
template <mark_kind Kind, std::uint8_t Bytes, bool IsReal>
struct cut_child {
  ticket_id result;
};

/// Lies in the older frame. `events` is 0 on the fast path: the callee returned a value in place
/// and nothing else happened.
struct mark {
  enum event : std::uint8_t { was_cut = 1, threw = 2, saved_exceptions = 4, saved_methods = 8 };

  void* sp;          ///< Where the older side resumes; written by the marked call.
  mark* outer;       ///< Next older open mark.
  ticket_id ticket;  ///< Where the result goes; valid once `was_cut`.
  mark_kind kind;
  std::uint8_t events;
  std::uint16_t words_behind;  ///< For the scan of frames that leave: see behind_mark.
  std::uint32_t methods;       ///< How many methods are open on the older side: the low 32 bits of
                               ///< method_guard's word. The younger side counts from 0.
  std::uint32_t fp;            ///< The older side's floating-point control word.
  std::uint32_t uncaught;      ///< With `caught`: the older side's exceptions (saved_exceptions).
  void* caught;

  /// How many words behind the mark are the callee's arguments, and how many words behind those are
  /// room for its result, which is unwritten while it runs. As far as behind_mark counts them.
  std::size_t argument_words() const { return words_behind & argument_words_max; }
  std::size_t unwritten_words() const { return words_behind >> argument_bits; }

  static constexpr unsigned argument_bits = 10;
  static constexpr std::size_t argument_words_max = (1u << argument_bits) - 1;
  static constexpr std::size_t unwritten_words_max = (1u << (16 - argument_bits)) - 1;
};

/// What lies behind a mark, in bytes.
struct behind_mark {
  std::size_t arguments = 0;
  std::size_t unwritten = 0;

  /// When not all arguments can be counted, nobody knows where the unwritten room begins: it then
  /// counts as none.
  constexpr std::uint16_t words() const {
    const std::size_t given = arguments / sizeof(std::uint64_t);
    if (given > mark::argument_words_max) return mark::argument_words_max;
    const std::size_t room = unwritten / sizeof(std::uint64_t);
    const std::size_t counted = room < mark::unwritten_words_max ? room : mark::unwritten_words_max;
    return static_cast<std::uint16_t>(given | counted << mark::argument_bits);
  }
};

inline std::uint32_t method_depth(const mark& m) {
  return m.methods & static_cast<std::uint32_t>(method_guard::depth_mask);
}

/// Saves in `m` the older side's exceptions in flight, and notes there that methods are open. The
/// child so starts with no exceptions and no methods.
void save_for_caller(mark& m);
/// Restores them, at return and when the older side resumes after a cut.
void restore_for_caller(mark& m);

/// Calls inner(m) under the mark `m` of an activation. Inline, so that the compiler saves only what
/// lives across the call instead of every callee-saved register.
[[gnu::always_inline]] inline std::uint64_t call_marked(mark* m, inner_function* inner) {
#if defined(__x86_64__)
  std::uint64_t result;
  asm volatile(SOJOURN_CALL_MARKED
               : "=a"(result), "+D"(m), "+S"(inner)
               :
               : "rdx", SOJOURN_CLOBBERS);
  return result;
#elif defined(__aarch64__)
  register auto x0 asm("x0") = reinterpret_cast<std::uint64_t>(m);
  register auto x1 asm("x1") = inner;
  asm volatile("bl sojourn_call_marked"
               : "+r"(x0), "+r"(x1)
               :
               : "x2", "x3", "x9", SOJOURN_CLOBBERS);
  return x0;
#endif
}
/// The same for the mark of a fork.
[[gnu::always_inline]] inline std::uint64_t call_fork_marked(mark* m, inner_function* inner,
                                                             bool may_leave) {
#if defined(__x86_64__) && !defined(SOJOURN_NO_CHECKED)
  return (may_leave ? sojourn_marked_calls.fork : sojourn_marked_calls.fork_to_stay)(m, inner);
#else
  return (may_leave ? sojourn_fork_marked : sojourn_fork_marked_to_stay)(m, inner);
#endif
}

/// The floating-point control word of the older side at a call, to be restored when the older side
/// goes on without the callee. On x86-64 it is that of x87, because reading MXCSR takes longer than
/// the rest of a mark; fesetround and the like change both in the same way.
struct fp_at_call {
#if defined(__x86_64__)
  std::uint16_t word;
#else
  std::uint32_t word;
#endif
};
[[gnu::always_inline]] inline void save_fp(volatile fp_at_call& at) {
#if defined(__x86_64__)
  asm volatile("fnstcw %0" : "=m"(at.word));
#elif defined(__aarch64__)
  std::uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  at.word = static_cast<std::uint32_t>(fpcr);
#endif
}
[[gnu::always_inline]] inline std::uint32_t fp_control_word() {
  fp_at_call now;
  save_fp(now);
  return now.word;
}

/// Opens `m` and calls inner(&m) under it.
[[gnu::always_inline]] inline std::uint64_t call_under(mark& m, mark_kind kind,
                                                       inner_function* inner,
                                                       behind_mark behind = {}) {
  m.outer = running.youngest;
  m.methods = static_cast<std::uint32_t>(counts.methods);
  m.kind = kind;
  m.events = 0;
  m.words_behind = behind.words();
  m.fp = fp_control_word();
  mark* open = &m;
  asm(""
      : "+r"(open));  // gcc 13 warns of a local's address kept here; the inner function resets it
  running.youngest = open;
  const exception_globals* in_flight = running.exceptions;
  if (__builtin_expect((reinterpret_cast<std::uintptr_t>(in_flight->caught) | in_flight->uncaught |
                        method_depth(m)) != 0,
                       0)) {
    save_for_caller(m);
  }
  return is_fork(kind) ? call_fork_marked(&m, inner, may_travel(kind)) : call_marked(&m, inner);
}

/// True in the inner function of `m`, at its end, when the older side is still here to return to.
/// Compares addresses and reads nothing of the mark: the mark may be absent from this rank.
[[gnu::always_inline]] inline bool older_side_is_here(const mark* m) { return running.base != m; }

/// To be called by the older side of a mark that was cut, first thing: tells sanitizers.
void resumed_after_cut();
/// The same, called in a fork's handler; also restores `fp`, the control word of fp_at_call.
void handler_goes_on(std::uint32_t fp);

/// In a catch block: keeps the exception for held_exception(), called right after the block is
/// left.
void hold_exception();
std::exception_ptr held_exception();

/// The running piece is finished: drops it and never returns. Its result must be on the way.
[[noreturn]] void finish_piece();
/// Ticket that takes the running piece's result.
ticket_id running_result();

}  // namespace sojourn::detail
