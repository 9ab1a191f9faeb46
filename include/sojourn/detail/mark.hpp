// SPDX-License-Identifier: Apache-2.0
// Marks: resumable boundaries in a stack. `call_marked` saves where the older side can go on and
// calls; when the callee returns, the mark is simply dropped; when the younger side has been cut
// off meanwhile, whoever has its result resumes the older side here instead.
#pragma once

#include <cstdint>

#include "sojourn/detail/running.hpp"
#include "sojourn/detail/ticket.hpp"

namespace sojourn::detail {

enum class mark_kind : std::uint8_t {
  activation,               ///< The older side waits for the result; may migrate.
  activation_by_reference,  ///< The same, but the callee refers to older frames: stays.
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

/// Lies in the older frame. `events` is 0 on the fast path: the callee returned a value in place
/// and nothing else happened.
struct mark {
  enum event : std::uint8_t { was_cut = 1, threw = 2, saved_exceptions = 4 };

  void* sp;          ///< Where the older side resumes; written by call_marked.
  mark* outer;       ///< Next older open mark.
  ticket_id ticket;  ///< Where the result goes; valid once `was_cut`.
  mark_kind kind;
  std::uint8_t events;
  exception_globals exceptions;  ///< The older side's, when `saved_exceptions`.
};

/// Saves the older side's exceptions in flight in `m`, so that the child starts with none.
void save_exceptions(mark& m);
/// Restores them, at return and when the older side resumes after a cut (CUT.md, Exceptions).
void restore_exceptions(mark& m);

#if defined(__x86_64__)

#if defined(__AVX512F__)
#define SOJOURN_VECTOR_CLOBBERS                                                                  \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20",  \
      "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30",  \
      "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define SOJOURN_VECTOR_CLOBBERS                                                            \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#endif

/// Calls inner(&m) under `m`. Inline, so that the compiler saves only what lives across the call
/// instead of every callee-saved register.
[[gnu::always_inline]] inline void call_marked(void (*inner)(mark*), mark* m) {
  void* fn = reinterpret_cast<void*>(inner);
  asm volatile("call sojourn_call_marked"
               : "+a"(fn), "+D"(m)
               :
               : "rbx", "rsi", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                 "memory", "cc", SOJOURN_VECTOR_CLOBBERS);
}

#elif defined(__aarch64__)

[[gnu::always_inline]] inline void call_marked(void (*inner)(mark*), mark* m) {
  register void* fn asm("x9") = reinterpret_cast<void*>(inner);
  register mark* x0 asm("x0") = m;
  asm volatile("bl sojourn_call_marked"
               : "+r"(fn), "+r"(x0)
               :
               : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x10", "x11", "x12", "x13", "x14", "x15",
                 "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
                 "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                 "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
                 "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "memory", "cc");
}

#else
#error "Sojourn knows x86-64 and aarch64"
#endif

/// Opens `m` and calls inner(&m) under it.
[[gnu::always_inline]] inline void call_under(mark& m, mark_kind kind, void (*inner)(mark*)) {
  m.outer = running.youngest;
  m.kind = kind;
  m.events = 0;
  running.youngest = &m;
  const exception_globals* in_flight = running.exceptions;
  if (__builtin_expect((reinterpret_cast<std::uintptr_t>(in_flight->caught) |
                        in_flight->uncaught) != 0, 0)) {
    save_exceptions(m);
  }
  call_marked(inner, &m);
}

/// True in the inner function of `m`, at its end, when the older side is still here to return to.
/// Compares addresses and reads nothing of the mark: the mark may be absent from this rank.
[[gnu::always_inline]] inline bool older_side_is_here(const mark* m) { return running.base != m; }

/// The running piece is finished: drops it and never returns. Its result must be on the way.
[[noreturn]] void finish_piece();
/// Ticket that takes the running piece's result.
ticket_id running_result();

}  // namespace sojourn::detail
