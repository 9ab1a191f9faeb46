// SPDX-License-Identifier: Apache-2.0
#include "observe/backtrace.hpp"

#include <ucontext.h>
#include <unwind.h>

#include <cstring>

#include "base/faults.hpp"
#include "fiber/call_below.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/switch.hpp"

namespace sojourn::detail {

namespace {

struct walk {
  std::uint64_t first;  ///< Code address where the walk begins; younger frames are the walker's.
  std::uint64_t stop;
  bool started;
  std::uint64_t* frames;
  std::size_t most;
  std::size_t count;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto* w = static_cast<walk*>(argument);
  int is_interrupted = 0;
  std::uint64_t address = _Unwind_GetIPInfo(context, &is_interrupted);
  if (address == 0) return _URC_END_OF_STACK;
  if (!w->started && address != w->first) return _URC_NO_REASON;
  // Of a call, an address inside it: the one after it may belong to another function. A frame that
  // a signal or a page fault has interrupted is at no call.
  w->frames[w->count++] = is_interrupted != 0 ? address : address - 1;
  w->started = true;
  if (w->count == w->most) return _URC_END_OF_STACK;
  return w->stop != 0 && _Unwind_GetCFA(context) >= w->stop ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void unwind(void* argument) { _Unwind_Backtrace(visit, argument); }

// The code that is walked may have been interrupted between two instructions that the unwinder's
// table does not tell apart, such as those by which an exception leaves the unwinder. The walk then
// follows a word that is not an address, and ends with the frames that it has: a report must not
// end a healthy rank.
void walk_carefully(void (*how)(void*), void* context) { (void)survives_faults(how, context); }

struct registers {
  std::uint64_t pc;
  std::uint64_t sp;
};

registers registers_of(const void* context) {
  const auto& r = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<std::uint64_t>(r.gregs[REG_RIP]),
          static_cast<std::uint64_t>(r.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {r.pc, r.sp};
#endif
}

}  // namespace

std::size_t walk_suspended(const piece* p, std::uint64_t* frames, std::size_t most) {
  struct start {
    call_context from;
    walk w;
  } at{caller_of(p), {}};
  at.w = {at.from.pc, p->hi, false, frames, most, 0};
  walk_carefully(
      [](void* argument) {
        auto* a = static_cast<start*>(argument);
        sojourn_call_as_if_from(&a->from, unwind, &a->w);
      },
      &at);
  return at.w.count;
}

bool interrupted_fiber(const void* context) {
  if (running_piece() == nullptr) return false;
  registers at = registers_of(context);
  if (handover.scheduler_low <= at.sp && at.sp < handover.scheduler_high) return false;
  return at.pc < reinterpret_cast<std::uint64_t>(sojourn_switch) ||
         at.pc >= reinterpret_cast<std::uint64_t>(sojourn_switch_end);
}

std::size_t walk_interrupted(const void* context, std::uint64_t stop, std::uint64_t* frames,
                             std::size_t most) {
  walk w{registers_of(context).pc, stop, false, frames, most, 0};
  walk_carefully(unwind, &w);
  return w.count;
}

void prepare_walks() {
  std::uint64_t frame;
  walk w{1, 0, false, &frame, 1, 0};
  _Unwind_Backtrace(visit, &w);
}

}  // namespace sojourn::detail
