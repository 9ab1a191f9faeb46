// SPDX-License-Identifier: Apache-2.0
// The ways to leave a stack, in assembly (switch_*.S), as inline calls.
#pragma once

#include <cstdint>

#include "sojourn/detail/registers.hpp"

extern "C" {
/// Where the scheduler resumes when a stack leaves or ends. Named in switch_*.S.
extern void* sojourn_scheduler_sp;
/// Where the older sides of marks resume after a cut; compared, never called.
extern const char sojourn_resume_marked[];
extern const char sojourn_resume_fork[];
#if defined(__x86_64__)
extern const char sojourn_resume_marked_checked[];
/// Where an older side resumes that goes on in the handler of its fork (boundary.hpp).
extern const char sojourn_resume_handler[];
#endif
/// The bounds of the code of switch_*.S; compared, never called. In the middle of a switch the
/// unwind tables fit neither stack.
extern const char sojourn_switch[];
extern const char sojourn_switch_end[];

/// Calls fn(a, b, sp) on this stack, made resumable at `sp`. Returns what fn returned, or the word
/// with which whoever holds the bytes from `sp` on resumed them, on whatever rank.
long sojourn_capture(long (*fn)(std::uint64_t a, std::uint64_t b, std::uint64_t sp),
                     std::uint64_t a, std::uint64_t b);
}

/// How many bytes of stack below a mark are cleared in checked mode; switch_*.S uses the same
/// number.
#if defined(__x86_64__)
#define SOJOURN_CLEARED_BYTES 4096
#else
#define SOJOURN_CLEARED_BYTES 0
#endif

namespace sojourn::detail {

/// Saves this stack's pointer in `save` and resumes the stack at `to`, which receives `word`.
/// Returns, when somebody resumes this stack, the word it receives.
[[gnu::always_inline]] inline long switch_stack(void** save, std::uint64_t to, long word) {
#if defined(__x86_64__)
  std::uint64_t ignored;
  asm volatile("call sojourn_switch"
               : "+a"(word), "+D"(save), "+S"(to), "=d"(ignored)
               :
               : SOJOURN_CLOBBERS);
  return word;
#elif defined(__aarch64__)
  register void** x0 asm("x0") = save;
  register std::uint64_t x1 asm("x1") = to;
  register long x2 asm("x2") = word;
  asm volatile("bl sojourn_switch" : "+r"(x0), "+r"(x1), "+r"(x2) : : "x3", "x9", SOJOURN_CLOBBERS);
  return reinterpret_cast<long>(x0);
#endif
}

/// Runs fn(argument) on the empty stack that ends at `top`; returns when that stack leaves.
[[gnu::always_inline]] inline void call_on_stack(void** save, std::uint64_t top, void (*fn)(void*),
                                                 void* argument) {
#if defined(__x86_64__)
  void* code = reinterpret_cast<void*>(fn);
  asm volatile("call sojourn_call_on"
               : "+a"(code), "+D"(save), "+S"(top), "+d"(argument)
               :
               : SOJOURN_CLOBBERS);
#elif defined(__aarch64__)
  register void** x0 asm("x0") = save;
  register std::uint64_t x1 asm("x1") = top;
  register void* x2 asm("x2") = reinterpret_cast<void*>(fn);
  register void* x3 asm("x3") = argument;
  asm volatile("bl sojourn_call_on"
               : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
               :
               : "x9", SOJOURN_CLOBBERS);
#endif
}

}  // namespace sojourn::detail
