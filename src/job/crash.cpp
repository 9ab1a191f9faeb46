// SPDX-License-Identifier: Apache-2.0
#include "job/crash.hpp"

#include <cxxabi.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <typeinfo>

#include "base/check.hpp"
#include "base/cut_text.hpp"
#include "base/faults.hpp"
#include "base/owned_signals.hpp"
#include "base/printable.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/stack_copy.hpp"
#include "fiber/thrown.hpp"
#include "frames/symbols.hpp"
#include "frames/thrown_frames.hpp"
#include "frames/walk.hpp"
#include "job/stack_text.hpp"
#include "memory/stack_slots.hpp"
#include "migrate/scan/checked_scan.hpp"
#include "sojourn/detail/owner.hpp"
#include "sojourn/detail/running.hpp"
#include "sojourn/objects.hpp"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#if SOJOURN_ASAN
/// Stacks that move cannot have the sanitizer's fake frames, and what frames held that migrated for
/// good would be reported as leaks.
extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=0:detect_leaks=0";
}
#endif

namespace sojourn::detail {

namespace {

job_segment* segment;
rank_block* own;
crash_record* record;
bool alone;
std::atomic<bool> worker_ended;

#if !SOJOURN_ASAN

pthread_t worker;
pid_t sender_outside;  ///< Process that sent the signal which was passed on to the worker.

/// Adds a frame to the record. `stop`: frames from there on are not on this rank.
bool note_frame(const walked_frame& frame, void* stop) {
  if (record->frame_count < crash_frames_max) record->frames[record->frame_count++] = frame.code;
  record->oldest[record->frames_in_all % crash_oldest_max] = frame.code;
  return ++record->frames_in_all < crash_walk_max && frame.low < *static_cast<std::uint64_t*>(stop);
}
constexpr std::uint64_t no_stop = ~std::uint64_t{0};

/// Fills in who began what runs.
void note_origin() {
  piece* p = running_piece();
  if (p == nullptr) return;
  if (int caller = called_by(p); caller != no_rank) record->called_by = caller + 1;
  auto base = reinterpret_cast<std::uint64_t>(p->base);
  if (p->result == 0 || !addresses.in_stacks(base)) return;
  record->mark = base;
  record->called_from = p->called_from;
  record->waiting_at = home_of(p->result) + 1;
}

/// To be called before anything that takes time: another rank may die because this one does, and be
/// done sooner.
void note_order() { record->order.store(segment->deaths_begun.fetch_add(1) + 1); }

void say_what(const char* text) { print_text(record->message, sizeof record->message, "%s", text); }

/// Notes where an exception that came from elsewhere was thrown.
void note_thrown() {
  record->thrown = thrown_last_words().frames;
  record->is_of_thrown = thrown_last_words().instead ? 1 : 0;
}

// Objects are small, and nothing is ever mapped below this.
constexpr std::uint64_t null_page = 65536;

/// Describes an access to a guard page.
void describe_guard(std::uint64_t address, const piece* running) {
  std::uint32_t slot = slots.index_of(address);
  const bool below = address < slots.high(slot);
  if (below && (running == nullptr || slot == running->slot)) {
    std::snprintf(record->message, sizeof record->message,
                  "stack overflow: the stack of %s, %llu KiB, is full; use less of it (recursion, "
                  "large local arrays), or %s",
                  slots.is_main(slot) ? "a main fiber" : "a fiber",
                  static_cast<unsigned long long>((slots.high(slot) - slots.low(slot)) >> 10),
                  slots.how_to_enlarge(slot));
  } else if (running != nullptr &&
             (below ? slots.begin(slot) == slots.end(running->slot) : slot == running->slot)) {
    std::snprintf(record->message, sizeof record->message,
                  "an access beyond the oldest frame of %s, to the guard above its stack: is "
                  "an index of a local array too large?",
                  slots.is_main(running->slot) ? "a main fiber" : "a fiber");
  } else {
    say_what("an access through a wild pointer, to the guard of another fiber's stack");
  }
}

/// Describes a fault at an address that no part of Sojourn explains.
void describe_fault(const siginfo_t* info) {
  auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  if (info->si_code <= 0) return;  // Sent by raise() or kill().
  if (info->si_code == SI_KERNEL) {
    say_what("an access through a wild pointer: its address is none that a process can have");
  } else if (address < null_page) {
    std::snprintf(record->message, sizeof record->message,
                  "an access through a null pointer, to the byte at offset %llu",
                  static_cast<unsigned long long>(address));
  } else if (info->si_code == SEGV_ACCERR) {
    say_what("an access that the memory at this address does not allow (a write to constants?)");
  } else {
    say_what("an access through a wild pointer: nothing is mapped at this address");
  }
}

/// `running`: what ran, or null; `calls`: the address was called, and no code is there.
void describe(int signal, const siginfo_t* info, bool writes, const piece* running, bool calls) {
  auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  bool faulted = info->si_code > 0 && info->si_code != SI_KERNEL;
  if ((signal == SIGABRT || faulted) && last_words()[0] != 0) {
    say_what(last_words());
  } else if (info->si_code <= 0 && (info->si_pid != getpid() || sender_outside != 0)) {
    std::snprintf(record->message, sizeof record->message, "process %d sent the signal",
                  static_cast<int>(sender_outside != 0 ? sender_outside : info->si_pid));
  } else if (calls) {
    say_what(address < null_page ? "a call through a null pointer to a function"
                                 : "a call of an address where no code is");
  } else if (signal == SIGSEGV && faulted && addresses.unit != 0 && slots.is_guard(address)) {
    describe_guard(address, running);
  } else if (signal == SIGBUS && faulted && addresses.unit != 0 &&
             address - addresses.heap < addresses.heap_bytes()) {
    say_what("out of memory: the system has no page for the global heap");
  } else if (signal == SIGSEGV && faulted && running != nullptr &&
             describe_caller_access(address, writes, record->message, sizeof record->message)) {
  } else if (signal == SIGSEGV && faulted && addresses.in_stacks(address)) {
    say_what(
        "an access to a stack address that is not on this rank: a frame that migrated refers to "
        "one that stayed behind");
  } else if (signal == SIGSEGV && faulted && addresses.unit != 0 &&
             address - addresses.heap < addresses.heap_bytes()) {
    const int owner = owner_of(address);
    if (owner == no_owner) {
      describe_fault(info);
    } else if (owner == job.me || in_reach(address, 1)) {
      std::snprintf(record->message, sizeof record->message,
                    "an access to the heap of rank %d where no object is", owner);
    } else {
      std::snprintf(record->message, sizeof record->message,
                    "a plain access to the heap of rank %d, which is not shared: use a method, get "
                    "or put",
                    owner);
    }
  } else if (signal == SIGSEGV) {
    describe_fault(info);
  }
}

/// The report of a job without a launcher. A forked process finds the names of the addresses:
/// whatever is broken here, such as the allocator's lock, may end or block that process, but not
/// this one.
void say_alone(int signal) {
  char line[768];
  make_printable(record->message);
  int n = std::snprintf(line, sizeof line, "sojourn: %s%s%s\n", strsignal(signal),
                        record->message[0] != 0 ? ": " : "", record->message);
  if (n > 0) (void)!write(2, line, static_cast<std::size_t>(n));
  pid_t namer = _Fork();
  if (namer == 0) {
    alarm(2);
    std::string text = stack_text(*record, "/proc/self/exe");
    (void)!write(2, text.data(), text.size());
    _exit(0);
  }
  int status = 0;
  if (namer > 0 && waitpid(namer, &status, 0) == namer && status == 0) return;
  for (std::uint32_t i = 0; i < record->frame_count; ++i) {
    n = std::snprintf(line, sizeof line, "  %2u 0x%llx\n", i,
                      static_cast<unsigned long long>(record->frames[i]));
    if (n > 0) (void)!write(2, line, static_cast<std::size_t>(n));
  }
}

/// exit() from the body or a handler: the other ranks would wait for this one for ever, so it is a
/// failure, and its stack is noted.
void note_early_exit(int status, void*) {
  constexpr int refused = 2;  // The program has said why in a sentence of its own.
  if (!pthread_equal(worker, pthread_self()) || own->pid.load() != getpid() || status == refused ||
      own->state.load() != rank_state::attached || record->written.load() != 0) {
    return;
  }
  note_order();
  std::snprintf(
      record->message, sizeof record->message,
      "exit(%d) was called in the middle of the job: return from the body of run() instead",
      status);
  note_origin();
  std::uint64_t stop = no_stop;
  if (piece* p = running_piece()) stop = p->hi;
  record->written.store(1, std::memory_order_release);
  walk_frames({}, note_frame, &stop);
}

/// A signal from outside comes to any thread, as a rule to the first, which only waits for the
/// worker's end. The report should tell what the worker does, so the signal is passed on to it.
/// True when it was.
bool sent_on_to_worker(int signal, const siginfo_t* info) {
  bool from_outside = info->si_code <= 0 && info->si_pid != getpid();
  if (!from_outside || worker_ended.load() || pthread_equal(worker, pthread_self()) != 0) {
    return false;
  }
  sender_outside = info->si_pid;
  return pthread_kill(worker, signal) == 0;
}

void on_signal(int signal, siginfo_t* info, void* context) {
  if (own->pid.load() != getpid()) {
    // A process that the rank has made by fork() dies as any other.
    disown_signal(signal);
    raise(signal);
    return;
  }
  if (sent_on_to_worker(signal, info)) return;
  static std::atomic<int> first_thread = 0;
  int expected = 0;
  int thread = gettid();
  if (first_thread.compare_exchange_strong(expected, thread)) {
    if (record->order.load() == 0) note_order();
    bool on_worker = pthread_equal(worker, pthread_self()) != 0;
    record->signal = signal;
    record->in_thread = on_worker ? 0 : 1;
    bool has_address = info->si_code > 0 && info->si_code != SI_KERNEL;
    record->address =
        has_address ? reinterpret_cast<std::uint64_t>(info->si_addr) : crash_record::no_address;
    const code_position at = interrupted_at(context);
    bool calls = signal == SIGSEGV && has_address && record->address == at.pc;
    piece* running = on_worker ? running_piece() : nullptr;
    if (signal == SIGABRT) note_thrown();
    if (on_worker && record->is_of_thrown == 0) note_origin();
    std::uint64_t stop = no_stop;
    if (running != nullptr) stop = running->hi - 16;  // checked mode: see frames_below
    describe(signal, info, access_of(context) == fault_access::write, running, calls);
    // Stored before the walk, which may fault again. The launcher reads the frames after this
    // process is gone.
    record->written.store(1, std::memory_order_release);
    if (record->is_of_thrown != 0) {
      // This is the stack of whoever got the exception, and says nothing.
    } else if (calls) {
      // No unwinder can begin where no code is, but the return address is where every call leaves
      // it.
      record->frames[record->frame_count++] = record->oldest[record->frames_in_all++] = at.pc;
      (void)walk_frames_from(caller_of_interrupted(context), note_frame, &stop);
    } else {
      walk_frames({at.pc}, note_frame, &stop);
    }
    if (alone) say_alone(signal);
  } else if (expected != thread) {
    // The first thread that got here ends the process, once its report is written.
    for (int i = 0; i < 200; ++i) poll(nullptr, 0, 10);
  }
  // The handler is reset: the fault, or this, ends the process as it would have without us.
  disown_signal(signal);
  raise(signal);
}

#endif

/// For exceptions that nobody catches: names type and text before the abort.
[[noreturn]] void on_terminate() {
  std::exception_ptr exception = std::current_exception();
  if (exception == nullptr) die("std::terminate was called");
  std::string type = demangle_type(exception.__cxa_exception_type()->name());
  if (const thrown_frames* from = rethrown_from(exception)) last_words_are_of(*from, false);
  try {
    std::rethrow_exception(exception);
  } catch (const rank_lost&) {
    std::fflush(nullptr);
    std::_Exit(status_rank_lost);  // the launcher tells of that rank
  } catch (const std::exception& e) {
    die("an exception of type %s is not caught: %s", type.c_str(), e.what());
  } catch (...) {
    die("an exception of type %s is not caught", type.c_str());
  }
}

}  // namespace

void attach_crash_report(job_segment& of_job, int rank, bool without_launcher) {
  segment = &of_job;
  own = &of_job.ranks[rank];
  record = &own->crash;
  alone = without_launcher;
  std::set_terminate(on_terminate);
#if !SOJOURN_ASAN
  last_words_are_reported(true);
  worker = pthread_self();
  if (!alone) on_exit(note_early_exit, nullptr);
  // A program without a launcher finds the names of functions on this stack, too.
  std::size_t bytes = getauxval(AT_MINSIGSTKSZ) + (std::size_t{alone ? 1024u : 64u} << 10);
  static void* const memory = std::malloc(bytes);  // kept here for those who look for leaks
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = bytes;
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  report_other_faults(on_signal);
  for (int s : {SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    struct sigaction before;
    // A program's own handler stays.
    if (sigaction(s, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
      sigaction(s, &action, nullptr);
    }
  }
#endif
}

void worker_ends() { worker_ended.store(true); }

}  // namespace sojourn::detail
