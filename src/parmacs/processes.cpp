// SPDX-License-Identifier: Apache-2.0
#include "parmacs/processes.hpp"

#include <setjmp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/check.hpp"
#include "frames/code_owner.hpp"
#include "parmacs/foreign_memory.hpp"
#include "parmacs/image.hpp"
#include "parmacs/meetings.hpp"
#include "parmacs/private_heap.hpp"
#include "sojourn/detail/shared_members.hpp"
#include "sojourn/rpc.hpp"
#include "sojourn/threads/thread.hpp"
#include "sojourn/waiting/sync.hpp"

extern "C" char** environ;

namespace sojourn::detail {

namespace {

/// A process that runs here: it is left by a jump to where it began.
struct process {
  int number = 0;
  int status = 0;
  jmp_buf begin;
};

struct start_order {
  std::uint64_t function = 0;
  std::uint64_t argument = 0;
  int number = 0;
};

struct placement {
  int number = 0;
  rank_t rank = 0;
  bool alone = false;  ///< No other process runs there.
};

/// Of this rank.
struct {
  bool runs_processes = false;
  pid_t pid = 0;
  bool ends = false;  ///< main() has ended.
  int status = 0;     ///< Of a process here that has failed.
  mutex guard;
  condition_variable changed;
  std::map<thread::id_type, process*> running;  ///< By thread; the main fiber is 0.
} here;

/// What rank 0 knows of all.
struct {
  std::vector<int> of_rank;
  int last_number = 0;
  long alive = 0;     ///< Without main().
  long unwaited = 0;  ///< Of those, and of the ended ones, how many nobody has waited for.
  long ended = 0;     ///< How many of the unwaited ones have ended.
  bool told_of_sharing = false;
  mutex guard;
  condition_variable changed;
  /// Taken while a process begins or ends, by whoever sees to it; given back from another rank.
  semaphore change{1};
} all;

/// Runs `body` as a process of this fiber; its exit status.
template <class Body>
int run_process(int number, Body body) {
  process mine;
  mine.number = number;
  const thread::id_type me = self().id();
  here.running[me] = &mine;
  if (setjmp(mine.begin) == 0) mine.status = body();
  here.running.erase(me);
  return mine.status;
}

process* running_process() {
  const auto at = here.running.find(self().id());
  return at == here.running.end() ? nullptr : at->second;
}

// --- On rank 0

/// The change begins; it ends when the process has begun (end_change).
placement place_process() {
  all.change.acquire();
  if (all.of_rank.empty()) {
    all.of_rank.assign(static_cast<std::size_t>(rank_count()), 0);
    all.of_rank[0] = 1;
  }
  forget_everyone();
  if (all.alive == 0) all.last_number = 0;
  const auto least = std::min_element(all.of_rank.begin(), all.of_rank.end());
  placement p;
  p.rank = static_cast<rank_t>(least - all.of_rank.begin());
  p.alone = *least == 0;
  p.number = ++all.last_number;
  ++*least;
  ++all.alive;
  ++all.unwaited;
  if (!p.alone && !all.told_of_sharing) {
    all.told_of_sharing = true;
    std::fprintf(stderr,
                 "sojourn: process %d shares the global variables of another one on rank %d, for "
                 "the program has more processes than the job has ranks (%d): start as many ranks "
                 "as processes if it keeps different values there\n",
                 p.number, p.rank, rank_count());
  }
  return p;
}

void begin_change() { all.change.acquire(); }
void end_change() { all.change.release(); }

void process_has_ended(rank_t rank) {
  --all.of_rank[static_cast<std::size_t>(rank)];
  --all.alive;
  ++all.ended;
  all.changed.notify_all();
  end_change();
}

void wait_on_first_rank(long count) {
  std::unique_lock lock(all.guard);
  const auto wanted = [count] { return count > 0 ? std::min(count, all.unwaited) : all.unwaited; };
  while (all.ended < wanted()) all.changed.wait(lock);
  const long waited = wanted();
  all.ended -= waited;
  all.unwaited -= waited;
}

// --- On the rank of a process

void call_function(const start_order& order) {
  call_process(reinterpret_cast<process_function>(order.function),
               reinterpret_cast<void*>(order.argument));
}

SOJOURN_CALLS_PROGRAM int call_main(main_function main, int argc, char** argv) {
  const int status = main(argc, argv, environ);
  asm volatile("");  // this frame is there until main has returned
  return status;
}

void run_created(start_order order) {
  shared::detail::barrier_here();
  // Not waited for: the creator may be looking for what this process stores, in a loop in which
  // calls are not answered.
  rpc_ff(0, end_change);
  const int status = run_process(order.number, [&] {
    call_function(order);
    return 0;
  });
  if (status == 0) {
    rpc(0, begin_change).get();
    shared::detail::barrier_gone();
    return rpc(0, process_has_ended, rank_me()).get();
  }
  if (rank_me() == 0) {
    // main() may be anywhere in the program.
    std::fflush(nullptr);
    std::_Exit(status);
  }
  here.status = status;
  here.changed.notify_all();
}

void begin_process(start_order order) {
  char name[24];
  std::snprintf(name, sizeof name, "process %d", order.number);
  spawn(thread_options{.name = std::string_view(name), .pinned = true}, run_created, order)
      .detach();
}

void end_rank() {
  here.ends = true;
  here.changed.notify_all();
}

/// The main fiber of every rank but the first: processes run beside it.
int serve() {
  shared::detail::barrier_gone();
  std::unique_lock lock(here.guard);
  while (!here.ends && here.status == 0) here.changed.wait(lock);
  return here.status;
}

/// The words of the command line where other processes can read them.
char** travelling(int argc, char** argv) {
  const auto words = static_cast<std::size_t>(argc);
  auto** copy = static_cast<char**>(program_heap.allocate((words + 1) * sizeof(char*), 16, true));
  if (copy == nullptr) return argv;
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t bytes = std::strlen(argv[i]) + 1;
    copy[i] = static_cast<char*>(program_heap.allocate(bytes, 16, false));
    if (copy[i] == nullptr) return argv;
    std::memcpy(copy[i], argv[i], bytes);
  }
  return copy;
}

int run_first(int argc, char** argv, main_function main) {
  char** words = travelling(argc, argv);
  const int status = run_process(0, [&] { return call_main(main, argc, words); });
  if (status != 0) return status;
  wait_for_processes(0);
  for (rank_t rank = 1; rank < rank_count(); ++rank) rpc(rank, end_rank).get();
  return 0;
}

}  // namespace

SOJOURN_CALLS_PROGRAM void call_process(process_function function, void* argument) {
  function(argument);
  asm volatile("");
}

void create_process(process_function function, void* argument) {
  if (!here.runs_processes) refuse_outside_job("sojourn_create()");
  const placement p = rpc(0, place_process).get();
  shared::detail::barrier_join();
  if (p.alone && p.rank != rank_me()) send_image(p.rank);
  const start_order order{reinterpret_cast<std::uint64_t>(function),
                          reinterpret_cast<std::uint64_t>(argument), p.number};
  rpc(p.rank, begin_process, order).get();
}

void wait_for_processes(long count) {
  rpc(0, wait_on_first_rank, count).get();
  if (rank_me() == 0 && all.alive == 0) program_heap.unseal();
}

bool are_all_processes(std::uint32_t count) {
  if (!here.runs_processes || process_number() != 0 || count != all.alive + 1) return false;
  if (!all.change.try_acquire()) return false;
  all.change.release();
  return true;
}

int process_number() {
  const process* p = running_process();
  return p == nullptr ? rank_me() : p->number;
}

bool is_forked_child() { return here.runs_processes && getpid() != here.pid; }

void end_process(int status) {
  process* p = is_forked_child() ? nullptr : running_process();
  if (p == nullptr) {
    // Not in a process, or before there are any.
    std::exit(status);
  }
  p->status = status & 0xff;
  longjmp(p->begin, 1);
}

int run_processes(int argc, char** argv, main_function main) {
  program_heap.attach(rank_me(), rank_count());
  watch_foreign_memory();
  here.runs_processes = true;
  here.pid = getpid();
  return rank_me() == 0 ? run_first(argc, argv, main) : serve();
}

}  // namespace sojourn::detail
