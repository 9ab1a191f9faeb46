// SPDX-License-Identifier: Apache-2.0
#include "observe/stack_walk.hpp"

#include <ucontext.h>
#include <unwind.h>

#include <cstring>

#include "fiber/switch.hpp"

namespace sojourn::detail {

namespace {

struct walk {
  std::uint64_t first;  ///< Frames younger than this address are the walker's.
  std::uint64_t stop;
  bool interrupted;  ///< The first address is not that of a call.
  bool started;
  std::uint64_t* frames;
  std::size_t most;
  std::size_t count;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto* w = static_cast<walk*>(argument);
  std::uint64_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  if (!w->started && address != w->first) return _URC_NO_REASON;
  // Of a caller, an address inside the call: the one behind it may belong to another function.
  w->frames[w->count++] = w->interrupted && !w->started ? address : address - 1;
  w->started = true;
  if (w->count == w->most) return _URC_END_OF_STACK;
  return w->stop != 0 && _Unwind_GetCFA(context) >= w->stop ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void unwind(void* argument) { _Unwind_Backtrace(visit, argument); }

std::uint64_t word_at(std::uint64_t address) {
  return *reinterpret_cast<const std::uint64_t*>(address);
}

/// The call that a suspended stack waits in, from what switch_*.S has saved at `sp`.
call_context caller_of(std::uint64_t sp) {
  bool at_mark = word_at(sp) == reinterpret_cast<std::uint64_t>(&sojourn_resume_marked);
#if defined(__x86_64__)
  std::uint64_t saved = at_mark ? word_at(sp + 8) : sp + 8;
#elif defined(__aarch64__)
  std::uint64_t saved = at_mark ? word_at(sp + 8) : sp + 16;
#endif
  return {word_at(saved + 8), saved + 16, word_at(saved)};
}

}  // namespace

std::size_t walk_suspended(const piece* p, std::uint64_t* frames, std::size_t most) {
  call_context from = caller_of(p->sp);
  walk w{from.pc, p->hi, false, false, frames, most, 0};
  sojourn_call_as_if_from(&from, unwind, &w);
  return w.count;
}

std::uint64_t stack_pointer(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(registers.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return registers.sp;
#endif
}

std::size_t walk_interrupted(const void* context, std::uint64_t stop, std::uint64_t* frames,
                             std::size_t most) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  auto at = static_cast<std::uint64_t>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  std::uint64_t at = registers.pc;
#endif
  walk w{at, stop, true, false, frames, most, 0};
  _Unwind_Backtrace(visit, &w);
  return w.count;
}

void prepare_walks() {
  std::uint64_t frame;
  walk w{1, 0, false, false, &frame, 1, 0};
  _Unwind_Backtrace(visit, &w);
}

}  // namespace sojourn::detail
