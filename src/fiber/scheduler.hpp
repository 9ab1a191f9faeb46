// SPDX-License-Identifier: Apache-2.0
// The scheduler: runs pieces and handlers one at a time, without preemption, from the worker
// thread's own stack. A stack that leaves hands over an action, which runs here once the stack is
// out of the way. The floors above do their work in such actions.
#pragma once

#include "base/check.hpp"
#include "fiber/piece.hpp"
#include "fiber/ready_queue.hpp"
#include "fiber/spare_stacks.hpp"
#include "fiber/stack_copy.hpp"
#include "fiber/switch.hpp"

namespace sojourn::detail {

/// Runs on the scheduler's stack, or below the frames that leave (leave_under_mark). `left` is
/// suspended and wholly in place; `context` may lie in its frames.
using leave_action = void (*)(piece* left, void* context);

/// What a stack that leaves hands over to the scheduler.
struct leaving {
  leave_action action = nullptr;  ///< Null when the stack has ended.
  void* context = nullptr;
  void* sp = nullptr;
  call_origin origin;               ///< Of the handler on the spare stack.
  std::uint64_t scheduler_low = 0;  ///< The scheduler's stack.
  std::uint64_t scheduler_high = 0;
};
extern leaving handover;

/// Ends the program: code that runs in no fiber wants to wait.
[[noreturn]] void waits_outside_fiber();

/// Suspends the running stack and runs `action`. Returns what it is told when it goes on. Inline:
/// every return between a resumed stack and its user's code is mispredicted.
[[gnu::always_inline]] inline resumed leave(leave_action action, void* context) {
  if (running_fiber == nullptr) [[unlikely]]
    waits_outside_fiber();
  handover.action = action;
  asm("" : "+r"(context));  // gcc 13 warns of a local's address kept here; it is used only below
  handover.context = context;
  announce_switch(handover.scheduler_low, handover.scheduler_high);
  long word = switch_stack(&handover.sp, reinterpret_cast<std::uint64_t>(sojourn_scheduler_sp), 1);
  confirm_switch();
  return resumed{word};
}

/// Calls fn(a, b, sp) on the running stack, made resumable at `sp`, as sojourn_capture does. If a
/// function returns the result of this call, it ends with a jump, and needs no return of its own.
[[gnu::always_inline]] inline long capture_stack(long (*fn)(std::uint64_t, std::uint64_t,
                                                            std::uint64_t sp),
                                                 std::uint64_t a, std::uint64_t b) {
  long word = sojourn_capture(fn, a, b);
  confirm_switch();
  return word;
}

/// Makes the running piece a suspended one whose youngest byte is at `sp`, while the calling code
/// still runs below it. From then on that code may do what actions do. It ends with abandon_stack.
piece* suspend_running(std::uint64_t sp);
/// Leaves the running stack for good.
[[noreturn]] void abandon_stack();
/// Ends such code instead of abandon_stack: resumes `p`, whose youngest frames are still on the
/// running stack.
void go_on(piece* p);

/// Runs at most `most` ready pieces, including those that become ready meanwhile, but not those
/// that give their turn. Returns how many it ran. Scheduler's stack only.
int run_ready(int most);
/// Runs ready pieces and tasks (sojourn/detail/tasks.hpp) in turn, at most `most` of each at a
/// time, until there are none or it has run `most` in all.
int run_what_is_here(int most);

/// How run_handler ended. A handler that has become a fiber (fiber_waits, fiber_ended) has taken
/// over the caller's count in `scope`, and releases it when it ends.
enum class handler_end : std::uint8_t { returned, fiber_waits, fiber_ended };

/// Runs fn(context) on a spare stack until it returns, or blocks and so becomes a fiber.
/// Scheduler's stack only. `pinned`: its frames never leave this rank. `goes_on`: if the blocked
/// fiber is already the next to run, resumes it immediately, once.
handler_end run_handler(void (*fn)(void*), void* context, bool pinned, void* scope,
                        call_origin origin = {}, bool goes_on = false);

/// Runs fn(context) as the rank's main fiber, until it first blocks or ends. Once.
void run_main(void (*fn)(void*), void* context);

/// The rank whose call began what `p` runs, or no_rank: for reports. A handler's fiber forgets it
/// when it moves to another rank.
int called_by(const piece* p);

/// The running piece; null on the scheduler's own stack outside a handler.
inline piece* running_piece() { return static_cast<piece*>(running_fiber); }
/// Drops a suspended piece: it has finished, or its bytes have left this rank.
void retire(piece* p);

/// Requires: called on the worker thread, before anything runs.
void attach_scheduler(std::uint64_t stack_low, std::uint64_t stack_high);
/// To be called when nothing runs any more.
void detach_scheduler();

}  // namespace sojourn::detail
