// SPDX-License-Identifier: Apache-2.0
// A rank's life: joins the job, starts the worker thread, runs the program's body in the main
// fiber, waits until the whole job is quiet, and leaves.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <optional>

#include "base/check.hpp"
#include "base/checked.hpp"
#include "base/cut_text.hpp"
#include "base/doctor_hint.hpp"
#include "base/kernel_files.hpp"
#include "base/owned_descriptors.hpp"
#include "base/printable.hpp"
#include "base/settings.hpp"
#include "checkpoint/checkpoint.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/stack_copy.hpp"
#include "frames/code_owner.hpp"
#include "frames/function_name.hpp"
#include "frames/stack_frames.hpp"
#include "job/alone.hpp"
#include "job/cores.hpp"
#include "job/counts_in_job.hpp"
#include "job/crash.hpp"
#include "job/exception_records.hpp"
#include "job/first_steps.hpp"
#include "job/meeting.hpp"
#include "job/run_rank.hpp"
#include "job/sanitizers.hpp"
#include "job/segment.hpp"
#include "job/shadow_stacks.hpp"
#include "job/tell_launcher.hpp"
#include "memory/address_map.hpp"
#include "memory/global_heap.hpp"
#include "memory/stack_slots.hpp"
#include "message/dispatcher.hpp"
#include "observe/watch.hpp"
#include "rpc/collective_messages.hpp"
#include "rpc/continuations.hpp"
#include "shared/rank_memory.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rank.hpp"
#include "sojourn/waiting/clock.hpp"

namespace sojourn::detail {

namespace {

struct this_rank {
  job_segment* segment = nullptr;
  bool alone = false;  // no launcher
  bool started = false;
  int (*body)(void*) = nullptr;
  void* context = nullptr;
  int status = 1;
  bool main_ended = false;
  piece* parked = nullptr;  // the main fiber, while it waits for the others of this rank
  int bell = -1;
  std::atomic<bool> ended = false;
  sigset_t signals;  // blocked on the worker
} self;

rank_block& block_of(int rank) { return self.segment->ranks[rank]; }

int allowed_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void close_on_exec(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

/// Maps the launcher's job, or makes one of a single rank.
int join_job() {
  const char* rank_text = std::getenv(rank_variable);
  const char* fds_text = std::getenv(job_fds_variable);
  job_fds fds;
  int rank = 0;
  if (rank_text == nullptr || fds_text == nullptr) {
    fds = create_job({.share_heap = shares_heap(), .cores = cores_to_count_on(allowed_cores())});
    self.alone = true;
    for (const std::string& sentence : unknown_settings()) {
      std::fprintf(stderr, "sojourn: %s\n", printable(sentence).c_str());
    }
  } else {
    const std::optional<long> number = parse_number(rank_text);
    if (!number || *number < 0 || *number >= rank_count_max) {
      throw error(
          format("%s=%s is not what the launcher sets: unset it", rank_variable, rank_text));
    }
    rank = static_cast<int>(*number);
    if (std::sscanf(fds_text, "%d,%d,%d", &fds.segment, &fds.heap, &fds.bell) != 3) {
      throw error(
          format("%s=%s is not what the launcher sets: unset it", job_fds_variable, fds_text));
    }
    // Again here, for a shell may stand between this rank and the launcher.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Programs that this one starts are not ranks.
    unsetenv(rank_variable);
    unsetenv(job_fds_variable);
    close_on_exec(fds.segment);
    if (fds.heap >= 0) close_on_exec(fds.heap);
    close_on_exec(fds.bell);
    // Lines reach the launcher as they are written.
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
  }
  own_descriptor(self.bell = fds.bell);
  self.segment = map_job(fds.segment);
  if (rank < 0 || rank >= static_cast<int>(self.segment->rank_count)) {
    throw error(format("%s=%d is not a rank of this job", rank_variable, rank));
  }
  // A rank can be joined once: what ran as this rank before has done so.
  if (auto before = block_of(rank).pid.load();
      before != 0 || !block_of(rank).pid.compare_exchange_strong(before, getpid())) {
    throw error(
        format("process %d has been rank %d of this job: each rank runs one program, once; start "
               "what is to run after it as a job of its own",
               before, rank));
  }
  job.me = rank;
  job.count = static_cast<int>(self.segment->rank_count);
  job.first_near = static_cast<int>(self.segment->first_here);
  job.near = static_cast<int>(self.segment->ranks_here);
  if (self.segment->has_several_hosts()) {
    for (int r = 0; r < job.count; ++r) {
      if (!self.segment->is_here(r)) continue;
      close_on_exec(block_of(r).bell);
      own_descriptor(block_of(r).bell);
    }
    close_on_exec(block_of(rank).channel);
  }
  clock_ahead_ns = self.segment->clock_ahead_ns;
  count_in_job(fds.segment);
  close(fds.segment);
  return fds.heap;
}

/// In a process that this rank has made by fork(). It has copies of the rank's memory, and shares
/// its rings: whatever it sent or received would be taken from the rank.
void leave_job_in_child() {
  note_forked_child();
  leave_job();
  // Empty rings of its own. (It would take messages that have come from those of the rank.)
  mmap(self.segment, self.segment->segment_bytes, PROT_READ | PROT_WRITE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  running_fiber = nullptr;  // nothing can wait
}

/// Signals to the process go to the worker, on which the program's body runs: there a handler
/// interrupts what the body does, as in a program without threads. The thread that called run()
/// only waits meanwhile. The worker takes those that the runtime needs, whatever was blocked
/// before.
class signals_go_to_worker {
 public:
  signals_go_to_worker() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
    self.signals = before_;
    // Page faults of shared memory, reports of crashes and of hangs, doorbells.
    for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGURG})
      sigdelset(&self.signals, s);
  }
  ~signals_go_to_worker() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_go_to_worker(const signals_go_to_worker&) = delete;
  signals_go_to_worker& operator=(const signals_go_to_worker&) = delete;

 private:
  sigset_t before_;
};

/// Async-signal-safe.
void ring() {
  std::uint64_t one = 1;
  (void)!write(self.bell, &one, sizeof one);
}

struct quiet {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  friend bool operator==(const quiet&, const quiet&) = default;
};

/// Suspends the main fiber until it is the only one of this rank.
void wait_for_fibers() {
  leave([](piece* left, void*) { self.parked = left; }, nullptr);
}

/// Returns when no rank has anything left to do: every rank's messages are counted twice, and
/// nothing moved in between (Mattern, four-counter method).
void wait_for_quiet() {
  quiet before{~std::uint64_t{0}, 0};
  let_restored_go();
  for (;;) {
    do {
      wait_for_fibers();
    } while (wait_for_open_collectives());
    traffic t = traffic_so_far();
    collectives_end_program();
    quiet now = reduce(quiet{t.sent, t.received}, [](quiet a, quiet b) {
      return quiet{a.sent + b.sent, a.received + b.received};
    });
    if (now == before && now.sent == now.received) return;
    before = now;
  }
}

/// Catches nothing: the stack of an exception that nobody catches is then there to be reported.
SOJOURN_CALLS_PROGRAM void main_fiber(void*) {
  self.status = self.body(self.context);
  if (in_forked_child()) {
    std::fflush(nullptr);
    _exit(self.status);
  }
  // The other ranks may wait for this one for ever: a failure ends the job.
  if (self.status == 0) {
    wait_for_quiet();
    if (!report_shared_memory()) self.status = 1;
    wait_for_quiet();
  }
  self.main_ended = true;
}

bool rank_is_done() {
  if (self.parked != nullptr && fibers_unfinished() == 1 && dispatcher_idle()) {
    piece* main = self.parked;
    self.parked = nullptr;
    make_ready(main, resumed::anywhere);
    return false;
  }
  return self.main_ended && dispatcher_idle();
}

/// Nothing can happen in this job any more: whoever watches it ends it.
void deadlocked() {
  if (!self.alone) return ring();
  end_alone_in_deadlock(*self.segment);
}

void live() {
  take_first_steps({.segment = self.segment,
                    .is_alone = self.alone,
                    .waiting_main = [] { return static_cast<const piece*>(self.parked); },
                    .deadlocked = deadlocked,
                    .ring = ring});
  self.started = true;
  wire().begin();
  open_posts();
  run_main(main_fiber, nullptr);
  dispatch_until(rank_is_done);
  if (const int lost = close_posts(); lost != 0) {
    std::fprintf(stderr,
                 "sojourn: rank %d: %d functions that other threads have posted will never run, "
                 "because the body of run() has ended: let it wait for those threads\n",
                 job.me, lost);
  }
  end_continuations();
  if (self.status == 0) {
    wire().finish();
    tell_launcher(*self.segment);
    block_of(job.me).state.store(rank_state::finished);
  }
}

/// Says why this rank cannot start, so that no other waits for it. Allocates nothing, for lack of
/// memory may be why.
int cannot_start(const std::exception& e) {
  const char* what = e.what();
  const char* hint = "";
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) {
    what =
        "a rank reserves some GiB of memory for its tables, and is refused them: raise the limits "
        "on "
        "data and address space (ulimit -d, ulimit -v), or allow overcommit";
    hint = doctor_hint;
  }
  // Ranks that cannot start mostly cannot for the same reason: the first says it.
  bool first = self.segment == nullptr || self.segment->start_failed.fetch_add(1) == 0;
  if (first) {
    // It may quote the user's settings.
    char sentence[1024];
    print_text(sentence, sizeof sentence, "sojourn: %s%s", what, hint);
    make_printable(sentence);
    std::fprintf(stderr, "%s\n", sentence);
  }
  if (self.segment != nullptr) arrive(*self.segment, ring);
  return status_not_started;
}

/// Called where the worker thread ends, with what worker() has set: a library has ended it.
void on_end_of_worker(void*) {
  if (self.ended.load()) return;
  // The frames of its fibers are left, not returned from.
  running_fiber = nullptr;
  forget_frames(addresses.worker_stack(),
                reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)));
  die("pthread_exit() was called in the middle of the job, on the thread that runs all of this "
      "rank: return from the function instead");
}

void* worker(void*) {
  pthread_key_t end;
  if (pthread_key_create(&end, on_end_of_worker) == 0) pthread_setspecific(end, &self);
  pthread_sigmask(SIG_SETMASK, &self.signals, nullptr);
  try {
    live();
  } catch (const rank_lost&) {
    self.status = status_rank_lost;  // the launcher tells of that rank
  } catch (const std::exception& e) {
    if (!self.started) {
      self.status = cannot_start(e);
    } else {
      std::fprintf(stderr, "sojourn: rank %d: %s\n", job.me, e.what());
      self.status = 1;
    }
  }
  worker_ends();
  detach_scheduler();
  self.ended.store(true);
  if (self.alone) ring();
  return nullptr;
}

/// Where a stream is closed, the first file that is opened would take its number, and what the
/// program prints would be written there.
void open_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // Gets the lowest number that is free, which is this one.
    if (open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY) != stream)
      throw error(format("/dev/null cannot be opened in place of the closed stream %d: %s", stream,
                         std::strerror(errno)));
  }
}

/// First function of the worker thread. Sets the job's stack canary, so that frames from other
/// ranks pass the check when they return; so it has no canary itself.
__attribute__((noinline, no_stack_protector)) void* worker_entry(void* argument) {
#if defined(__x86_64__)
  asm volatile("movq %0, %%fs:0x28" : : "r"(self.segment->secret));
#endif
  return worker(argument);
}

}  // namespace

int run_rank(int (*body)(void*), void* context) {
  static std::atomic<bool> is_called = false;
  if (is_called.exchange(true)) {
    die("run() is called a second time in this process, and a process is a rank of one job, once: "
        "put all that it does into the function that is passed to run()");
  }
  self.body = body;
  self.context = context;
  try {
    open_standard_streams();
    int heap_fd = join_job();
    attach_checked();
    refuse_sanitizer_of_program_alone();
    refuse_shadow_stacks();
    refuse_second_exception_record();
    map_region(
        map_from_environment(job.count), job.me, heap_fd,
        {static_cast<int>(self.segment->first_here), static_cast<int>(self.segment->ranks_here)});
    self.segment = static_cast<job_segment*>(
        move_mapping_to_runtime_memory(self.segment, self.segment->segment_bytes));
    // Most rings and blocks have never been touched: a core dump that held them all would fill
    // them.
    madvise(reinterpret_cast<std::byte*>(self.segment) + self.segment->transport_offset,
            self.segment->segment_bytes - self.segment->transport_offset, MADV_DONTDUMP);
    slots.attach(job.me, new_watch);
    attach_heap(self.segment->secret);
    void* stack = reinterpret_cast<void*>(addresses.worker_stack());
    if (mprotect(stack, address_map::worker_stack_bytes, PROT_READ | PROT_WRITE) != 0) {
      throw error(
          format("the worker's stack cannot be mapped: %s%s", std::strerror(errno), doctor_hint));
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, address_map::worker_stack_bytes);
    static const int forks_are_told [[maybe_unused]] =
        pthread_atfork(nullptr, nullptr, leave_job_in_child);
    const signals_go_to_worker masked;
    pthread_t thread;
    int failure = pthread_create(&thread, &attributes, worker_entry, nullptr);
    if (failure != 0)
      throw error(format(
          "the worker thread cannot start (%s): raise the limits on processes (ulimit -u) and "
          "memory%s",
          std::strerror(failure), doctor_hint));
    if (self.alone) watch_alone(*self.segment, self.bell, self.ended);
    pthread_join(thread, nullptr);
    leave_job();
    note_job_ends();
  } catch (const std::exception& e) {
    return cannot_start(e);
  }
  return self.status;
}

}  // namespace sojourn::detail

extern "C" {
[[noreturn]] void __real_pthread_exit(void* result);

/// On the rank's own thread it would leave the frames of all its fibers; in a call, the frames of
/// the runtime below would take it for an exception of their own. Names who calls it.
[[noreturn]] void __wrap_pthread_exit(void* result) {
  using namespace sojourn::detail;
  if (const piece* p = running_fiber == nullptr ? nullptr : running_piece(); p != nullptr) {
    die("`%s` calls pthread_exit(), on the thread that runs all of this rank: return from the "
        "function instead",
        function_name(user_code(p->hi)).c_str());
  }
  __real_pthread_exit(result);
}
}
