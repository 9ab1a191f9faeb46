// SPDX-License-Identifier: Apache-2.0
#include "job/crash.hpp"

#include <cxxabi.h>
#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <typeinfo>

#include "base/check.hpp"
#include "base/symbols.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/stack_copy.hpp"
#include "memory/stack_slots.hpp"
#include "migrate/checked_scan.hpp"
#include "sojourn/detail/running.hpp"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#if SOJOURN_ASAN
/// Stacks that move cannot have fake frames, and frames that left for good leak what they held.
extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=0:detect_leaks=0";
}
#endif

namespace sojourn::detail {

namespace {

crash_record* record;
bool alone;

#if !SOJOURN_ASAN

struct walk {
  std::uint64_t fault;  ///< Where the signal hit; frames younger than that are the handler's.
  std::uint64_t stop;   ///< Frames from here on are not on this rank.
  bool started;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  auto* w = static_cast<walk*>(argument);
  std::uint64_t address = _Unwind_GetIP(context);
  if (address == 0) return _URC_END_OF_STACK;
  if (!w->started && address != w->fault) return _URC_NO_REASON;
  // Of a caller, the address behind the call: it may belong to the next line or function.
  record->frames[record->frame_count++] = w->started ? address - 1 : address;
  w->started = true;
  if (record->frame_count == crash_frames_max) return _URC_END_OF_STACK;
  return w->stop != 0 && _Unwind_GetCFA(context) >= w->stop ? _URC_END_OF_STACK : _URC_NO_REASON;
}

void describe(int signal, const siginfo_t* info, bool writes) {
  auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  if (signal == SIGABRT && last_words()[0] != 0) {
    std::snprintf(record->message, sizeof record->message, "%s", last_words());
  } else if (signal == SIGSEGV && addresses.unit != 0 && slots.is_guard(address)) {
    std::uint32_t slot = slots.index_of(address);
    std::snprintf(record->message, sizeof record->message,
                  "stack overflow: the stack of %s, %llu KiB, is full; use less of it (recursion, "
                  "large local arrays)%s",
                  slots.is_main(slot) ? "a main fiber" : "a fiber",
                  static_cast<unsigned long long>((slots.high(slot) - slots.low(slot)) >> 10),
                  slots.is_main(slot) ? "" : ", or set SOJOURN_STACK_KIB");
  } else if (signal == SIGBUS && addresses.unit != 0 &&
             address - addresses.heap < addresses.heap_bytes()) {
    std::snprintf(record->message, sizeof record->message,
                  "out of memory: the system has no page for the global heap");
  } else if (signal == SIGSEGV &&
             describe_caller_access(address, writes, record->message, sizeof record->message)) {
  } else if (signal == SIGSEGV && addresses.in_stacks(address)) {
    std::snprintf(record->message, sizeof record->message,
                  "an access to a stack address that is not on this rank: a frame that migrated "
                  "refers to one that stayed behind");
  } else if (signal == SIGSEGV && addresses.unit != 0 &&
             address - addresses.heap < addresses.heap_bytes()) {
    std::snprintf(record->message, sizeof record->message,
                  "a plain access to the heap of rank %d, which is not shared: use a method, get "
                  "or put",
                  static_cast<int>((address - addresses.heap) >> addresses.heap_shift));
  }
}

void say_alone(int signal) {
  char line[768];
  int n = std::snprintf(line, sizeof line, "sojourn: %s%s%s\n", strsignal(signal),
                        record->message[0] != 0 ? ": " : "", record->message);
  if (n > 0) (void)!write(2, line, static_cast<std::size_t>(n));
  for (std::uint32_t i = 0; i < record->frame_count; ++i) {
    std::string name = symbolise(record->frames[i]);
    n = std::snprintf(line, sizeof line, "  %2u %s\n", i, name.c_str());
    if (n > 0) (void)!write(2, line, static_cast<std::size_t>(n));
  }
}

void on_signal(int signal, siginfo_t* info, void* context) {
  static bool entered = false;
  if (!entered) {
    entered = true;
    record->signal = signal;
    record->address = reinterpret_cast<std::uint64_t>(info->si_addr);
    walk w{0, 0, false};
    bool writes = false;
#if defined(__x86_64__)
    writes = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
    w.fault =
        static_cast<std::uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    w.fault = static_cast<ucontext_t*>(context)->uc_mcontext.pc;
#endif
    if (piece* p = running_piece()) w.stop = p->hi - 16;  // checked mode: see frames_below
    describe(signal, info, writes);
    // Now: the walk may fault again. The launcher reads the frames after this process is gone.
    record->written.store(1, std::memory_order_release);
    _Unwind_Backtrace(visit, &w);
    if (alone) {
      // Names are looked up in allocated memory, which may be what is broken.
      alarm(2);
      say_alone(signal);
    }
  }
  // The handler is reset: the fault, or this, ends the process as it would have without us.
  ::signal(signal, SIG_DFL);
  raise(signal);
}

#endif

/// For exceptions that nobody catches: names type and text before the abort.
[[noreturn]] void on_terminate() {
  std::exception_ptr exception = std::current_exception();
  if (exception == nullptr) die("std::terminate was called");
  std::string type = demangle(exception.__cxa_exception_type()->name());
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    die("an exception of type %s is not caught: %s", type.c_str(), e.what());
  } catch (...) {
    die("an exception of type %s is not caught", type.c_str());
  }
}

}  // namespace

void attach_crash_report(rank_block& block, bool without_launcher) {
  record = &block.crash;
  alone = without_launcher;
  std::set_terminate(on_terminate);
#if !SOJOURN_ASAN
  last_words_are_reported(!alone);
  std::size_t bytes = getauxval(AT_MINSIGSTKSZ) + (std::size_t{64} << 10);
  stack_t stack{};
  stack.ss_sp = std::malloc(bytes);
  stack.ss_size = bytes;
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    struct sigaction before;
    // A program's own handler stays.
    if (sigaction(s, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
      sigaction(s, &action, nullptr);
    }
  }
#endif
}

}  // namespace sojourn::detail
