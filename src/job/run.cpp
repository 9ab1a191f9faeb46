// SPDX-License-Identifier: Apache-2.0
// A rank's life: joins the job, starts the worker thread, runs the program's body in the main
// fiber, waits until the whole job is quiet, and leaves.
#include <cxxabi.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
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
#include "base/loaded_libraries.hpp"
#include "base/owned_descriptors.hpp"
#include "base/printable.hpp"
#include "base/settings.hpp"
#include "checkpoint/checkpoint.hpp"
#include "fiber/fork_links.hpp"
#include "fiber/forks.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/stack_copy.hpp"
#include "fiber/ticket_table.hpp"
#include "frames/code_owner.hpp"
#include "frames/function_name.hpp"
#include "frames/stack_frames.hpp"
#include "frames/symbols.hpp"
#include "job/cores.hpp"
#include "job/crash.hpp"
#include "job/run_rank.hpp"
#include "job/sanitizers.hpp"
#include "job/segment.hpp"
#include "job/segment_neighbours.hpp"
#include "job/shadow_stacks.hpp"
#include "memory/address_map.hpp"
#include "memory/global_heap.hpp"
#include "memory/stack_slots.hpp"
#include "message/bundles.hpp"
#include "message/dispatcher.hpp"
#include "message/programs.hpp"
#include "migrate/fingerprint.hpp"
#include "migrate/reading.hpp"
#include "migrate/scan/scan.hpp"
#include "migrate/scan/stale_report.hpp"
#include "migrate/ship.hpp"
#include "migrate/steal.hpp"
#include "migrate/thread/balance.hpp"
#include "migrate/thread/threads.hpp"
#include "migrate/thread/xthreads.hpp"
#include "object/records.hpp"
#include "object/sites.hpp"
#include "observe/hang_report.hpp"
#include "observe/watch.hpp"
#include "rpc/bulk.hpp"
#include "rpc/collective_messages.hpp"
#include "rpc/continuations.hpp"
#include "rpc/dropped_results.hpp"
#include "rpc/functions.hpp"
#include "rpc/kept_values.hpp"
#include "rpc/named.hpp"
#include "rpc/results.hpp"
#include "rpc/scopes.hpp"
#include "rpc/stop.hpp"
#include "rpc/tickets.hpp"
#include "shared/rank_memory.hpp"
#include "sojourn/clock.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/rank.hpp"
#include "transport/link/agent_sockets.hpp"
#include "transport/link/carriers.hpp"

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

/// A copy of the counts, with which a forked child goes on.
struct {
  counters so_far;
  std::uint64_t methods;
  shared::counters of_shared;
} counts_at_fork;

void keep_counts() { counts_at_fork = {counts, counts.methods, counts.shared}; }
void take_counts() {
  static_cast<counters&>(counts) = counts_at_fork.so_far;
  counts.methods = counts_at_fork.methods;
  counts.shared = counts_at_fork.of_shared;
}

/// From here on the counts are in the job's memory, where the launcher finds them whatever ends
/// this rank.
void count_in_job(int segment_fd) {
  keep_counts();
  auto offset = static_cast<off_t>(job_segment::counts_offset(job.me, job.count));
  if (mmap(&counts, sizeof counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, segment_fd,
           offset) == MAP_FAILED) {
    throw error(format("the counts cannot be mapped: %s", std::strerror(errno)));
  }
  take_counts();
  // Otherwise a child that goes on without exec would count for this rank.
  pthread_atfork(keep_counts, nullptr, [] {
    if (mmap(&counts, sizeof counts, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
      take_counts();
    }
  });
}

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

void refuse_shadow_stacks() {
  if (shadow_stacks_here() == shadow_stacks::on) {
    throw error(
        format("shadow stacks are enabled for this process, and stacks that move cannot have "
               "them: %s%s",
               shadow_stacks_remedy, doctor_hint));
  }
}

/// Each fiber has a record of the exceptions that it handles, which takes the place of the thread's
/// in this program's C++ runtime. A library with a C++ runtime of its own (libstdc++.so) must use
/// the same record: two fibers in its catch blocks would mix their exceptions otherwise.
void refuse_second_exception_record() {
  constexpr const char* name = "__cxa_get_globals";
  const auto* ours = reinterpret_cast<const void*>(&abi::__cxa_get_globals);
  // Where the program exports its own, libraries that come later use it, too.
  if (address_for_libraries(name) == ours || !library_has_its_own(name, ours)) return;
  throw error(
      "this program has loaded a library with a C++ runtime of its own, and does not export "
      "__cxa_get_globals, so the library's exceptions would mix between fibers: link the program "
      "with the flags of the CMake target sojourn::sojourn, or of `pkg-config --libs sojourn`");
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

/// This rank has attached or could not: the last one wakes those that wait, or their agent, which
/// waits for those of other hosts.
void arrive() {
  job_segment& s = *self.segment;
  const std::uint32_t arrived = s.start_arrived.fetch_add(1) + 1;
  if (arrived >= s.rank_count) {
    syscall(SYS_futex, &s.start_arrived, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  } else if (arrived == s.ranks_here) {
    ring();
  }
}

/// Addresses must mean the same in all ranks.
void compare_memory(const rank_block& rank, int r) {
  const rank_block& first = block_of(0);
  auto compare = [r](std::uint64_t of_first, std::uint64_t here, unsigned shift, const char* what) {
    if (of_first == here) return;
    throw error(
        format("rank 0 has %s=%llu and rank %d has %llu: start all ranks of a job with the "
               "same",
               what, static_cast<unsigned long long>(of_first >> shift), r,
               static_cast<unsigned long long>(here >> shift)));
  };
  compare(first.region_bytes, rank.region_bytes, 30, "SOJOURN_REGION_GIB");
  compare(first.stack_bytes, rank.stack_bytes, 10, "SOJOURN_STACK_KIB");
  compare(first.main_stack_bytes, rank.main_stack_bytes, 10, "SOJOURN_MAIN_STACK_KIB");
  compare(first.page_bytes, rank.page_bytes, 0, "pages of bytes");
}

/// Hosts may differ in what stacks need: the job works, and moves less. Rank 0 says so once.
void warn_of_unlike_hosts(int first, int other) {
  static bool is_said = false;
  if (job.me != 0 || std::exchange(is_said, true)) return;
  std::fprintf(stderr,
               "sojourn: ranks %d and %d are on hosts that differ: one has %s. Stacks do not go "
               "between such hosts: there, via::migrate means via::rpc, and threads stay "
               "(docs/cluster.md)\n",
               first, other,
               what_differs(block_of(first).stack_needs, block_of(other).stack_needs).c_str());
}

/// Ranks that were started as one program must run the same one; all must use the same messages.
void compare_ranks() {
  const rank_block* first = nullptr;  // the first rank of its part
  for (int r = 0; r < job.count; ++r) {
    const rank_block& rank = block_of(r);
    compare_memory(rank, r);
    if (first == nullptr || rank.part != first->part) first = &rank;
    const bool is_alike = std::equal(std::begin(rank.stack_needs), std::end(rank.stack_needs),
                                     std::begin(first->stack_needs));
    if (rank.image == first->image && !is_alike && self.segment->has_several_hosts())
      warn_of_unlike_hosts(static_cast<int>(first - &block_of(0)), r);
    else if (rank.image != first->image || !is_alike) {
      throw error(
          format("ranks %td and %d run different programs or libraries, so their stacks cannot be "
                 "exchanged: start the same executable on every rank, or the programs as those of "
                 "several: sojourn run -n 1 ./a : -n 1 ./b",
                 first - &block_of(0), r));
    }
    if (rank.wire_fingerprint != block_of(0).wire_fingerprint) {
      throw error(
          format("ranks 0 (%s) and %d (%s) were built with different versions of Sojourn, or one "
                 "without checked mode: build them with the same",
                 block_of(0).program, r, rank.program));
    }
  }
}

/// Waits until every rank has attached, or has found that it cannot.
void wait_for_all() {
  job_segment& s = *self.segment;
  block_of(job.me).state.store(rank_state::attached);
  arrive();
  // Returns at once when another rank has arrived since the word was read.
  for (std::uint32_t seen; (seen = s.start_arrived.load()) < s.rank_count;) {
    syscall(SYS_futex, &s.start_arrived, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }
  if (s.start_failed.load() != 0) std::_Exit(status_not_started);  // that rank said why
  compare_ranks();
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

/// Prints the report of this rank, the only one of its job.
void say_alone(const char* why, bool proven) {
  hang_view view;
  view.why = why;
  view.proven = proven;
  view.ranks.resize(1);
  rank_view& only = view.ranks[0];
  only.file = "/proc/self/exe";
  watch_area area = self.segment->watch();
  std::uint32_t wanted = area.of(0).report_wanted.load();
  bool answered = area.of(0).report_given.load() == wanted;
  only.condition = answered                                  ? rank_condition::waiting
                   : area.of(0).stack_given.load() == wanted ? rank_condition::computing
                                                             : rank_condition::silent;
  only.pid = getpid();
  only.report = area.report_of(0);
  std::string text = explain(view, "sojourn: ").text;
  std::fflush(stdout);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

/// Nothing can happen in this job any more: whoever watches it ends it.
void deadlocked() {
  if (!self.alone) return ring();
  write_report(self.segment->watch().report_of(0), false);
  say_alone("no fiber can go on, and no message is on its way", true);
  std::fflush(nullptr);
  std::_Exit(status_deadlock);
}

/// The first thread of a job without a launcher waits here for the worker's end, and for requests.
void watch_alone() {
  std::uint32_t seen = 0;
  while (!self.ended.load()) {
    pollfd bell{self.bell, POLLIN, 0};
    if (poll(&bell, 1, -1) != 1) continue;
    std::uint64_t rings;
    (void)!read(self.bell, &rings, sizeof rings);
    watch_area area = self.segment->watch();
    std::uint32_t asked = area.all().asked.load();
    if (self.ended.load() || asked == seen) continue;
    seen = asked;
    area.ask(0, asked);
    for (int i = 0; i < 100 && area.of(0).report_given.load() != asked; ++i) {
      if (i == 20) syscall(SYS_tgkill, getpid(), area.of(0).thread.load(), SIGURG);
      if (i > 25 && area.of(0).stack_given.load() == asked) break;
      poll(nullptr, 0, 2);
    }
    say_alone("a report was asked for", false);
  }
}

/// Lets `write` add to what finished ranks have told. Not when another rank keeps the lock, which
/// it holds for microseconds: one that died with it must not stop this one.
template <class Write>
void tell_launcher(Write write) {
  job_segment& s = *self.segment;
  for (int tries = 0; s.telling_locked.exchange(1) != 0; ++tries) {
    if (tries == 1000) return;
    sched_yield();
  }
  write(s);
  s.telling_locked.store(0);
}

/// Adds to the job's segment what the entries of SOJOURN_VIA matched on this rank, so that the
/// launcher tells of it once.
void tell_of_settings() {
  // A single rank has no access to another one's objects, and the setting may be for larger jobs.
  if (job.count == 1) return;
  const std::vector<site_rule_use> uses = site_rule_uses();
  tell_launcher([&](job_segment& s) {
    for (std::size_t i = 0; i < std::min(uses.size(), setting_uses_max); ++i) {
      setting_use& told = s.uses[i];
      const site_rule_use& use = uses[i];
      if (i == s.use_count) {
        std::snprintf(told.name, sizeof told.name, "%s", std::string(use.name).c_str());
        told.edits = ~0u;
        ++s.use_count;
      }
      if (use.matched) told.matched = 1;
      if (!use.nearest.empty() && use.edits < told.edits) {
        told.edits = static_cast<std::uint32_t>(use.edits);
        std::snprintf(told.nearest, sizeof told.nearest, "%s", use.nearest.c_str());
      }
    }
  });
}

/// The same of the places where this rank forked.
void tell_of_forks() {
  if (self.segment == nullptr) return;
  const std::vector<fork_site_use> uses = fork_site_uses();
  if (uses.empty()) return;
  tell_launcher([&](job_segment& s) {
    const std::uint32_t part = block_of(job.me).part;
    for (const fork_site_use& use : uses) {
      fork_site_told* const end = s.fork_sites + s.fork_site_count;
      fork_site_told* told = std::find_if(s.fork_sites, end, [&](const fork_site_told& one) {
        return one.site == use.site && one.part == part;
      });
      if (told == end) {
        if (s.fork_site_count < fork_sites_told_max) {
          ++s.fork_site_count;
        } else {
          told = std::min_element(s.fork_sites, end,
                                  [](const auto& a, const auto& b) { return a.forks < b.forks; });
          if (told->forks >= use.forks) continue;
        }
        *told = {use.site, use.code, 0, 0, 0, part, 0, 0};
      }
      told->forks += use.forks;
      told->blocked += use.blocked;
      told->bytes_cut += use.bytes_cut;
      told->linked_ranks += use.is_linked ? 1 : 0;
      ++told->ranks;
    }
  });
}

void introduce_myself() {
  rank_block& mine = block_of(job.me);
  std::snprintf(mine.program, sizeof mine.program, "%s", program_invocation_short_name);
  const fingerprints& own = fingerprint();
  mine.image = own.image;
  std::memcpy(mine.stack_needs, own.stack_needs, sizeof mine.stack_needs);
  mine.wire_fingerprint = wire_fingerprint();
  mine.region_bytes = addresses.bytes;
  mine.stack_bytes = addresses.stack_bytes;
  mine.main_stack_bytes = addresses.main_stack_bytes;
  mine.page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Where the job has several hosts: the ranks of this one, and what carries messages to others.
std::optional<shm::several_hosts> hosts_of_job() {
  const job_segment& s = *self.segment;
  if (!s.has_several_hosts()) return std::nullopt;
  if (encrypts_job() || carrier_of_job() == carrier::ucx) distrust_frames_without_debug_info();
  // Never destroyed: a thread of the program may end the process while the worker uses it.
  static link& links = *make_link(carrier_of_job(), job.me,
                                  std::make_unique<agent_sockets>(block_of(job.me).channel))
                            .release();
  return shm::several_hosts{.first_near = static_cast<int>(s.first_here),
                            .near = static_cast<int>(s.ranks_here),
                            .carrier = &links,
                            .bell = block_of(job.me).bell};
}

void attach_worker() {
  attach_scheduler(addresses.worker_stack(),
                   addresses.worker_stack() + address_map::worker_stack_bytes);
}

void attach_messages() {
  job_segment& s = *self.segment;
  const std::optional<shm::several_hosts> hosts = hosts_of_job();
  attach_dispatcher(reinterpret_cast<std::byte*>(&s) + s.transport_offset, job.me, job.count,
                    static_cast<int>(s.cores), hosts ? &*hosts : nullptr);
}

void attach_near_ranks() {
  static const segment_neighbours near(*self.segment);
  attach_neighbours(near);
  on_dispatch.fail_waits = [](int r) {
    fail_answers_of(r);
    fail_arrivals_from(r);
    fail_finishes(r);
    fail_collective();
    fail_shared_memory();  // last: it may end the rank
  };
}

void attach_reports() {
  attach_crash_report(*self.segment, job.me, self.alone);
  attach_watch(self.segment->watch(),
               {!self.alone, [] { return static_cast<const piece*>(self.parked); }, deadlocked,
                ring, takes_part_in_shared_barrier,
                [] {
                  const auto now = attendance_at_shared_barrier();
                  return barrier_part{now.members, now.arrived, now.guests};
                }});
}

void attach_checkpoints() {
  const job_segment& s = *self.segment;
  attach_checkpoint({.secret = s.secret,
                     .hosts = s.hosts,
                     .over_ucx = s.has_several_hosts() && carrier_of_job() == carrier::ucx,
                     .encrypted = s.has_several_hosts() && encrypts_job()},
                    {{"shared memory", save_shared_memory, load_shared_memory},
                     unsaved_shared_memory,
                     gather_shared_memory});
}

void restore_if_asked() {
  const job_segment& s = *self.segment;
  if (s.restore_path[0] != 0) restore_rank(s.restore_path, s.restored);
}

void attach_all_programs() {
  attach_programs([](int r) {
    const rank_block& rank = block_of(r);
    fingerprints of_rank{rank.image, {}};
    std::memcpy(of_rank.stack_needs, rank.stack_needs, sizeof rank.stack_needs);
    return rank_program{rank.image, of_rank.all(), rank.program};
  });
}

/// How a rank comes to life. The order is the same in each process also where no reason is given:
/// some of these take memory of the runtime, which in a restored job must lie where it lay.
constexpr void (*first_steps[])() = {
    note_job_begins,
    attach_worker,   // before anything runs
    attach_tickets,  // before anything opens one
    attach_forks,
    attach_functions,
    // These register handlers and hooks, of which the dispatcher makes copies.
    attach_results,
    attach_forwarding,
    attach_dropped_results,
    attach_collectives,
    attach_scopes,
    attach_bulk,
    attach_kept,
    attach_names,
    attach_stop,
    attach_scan,
    attach_ship,
    attach_reading,
    attach_threads,
    attach_xthreads,
    attach_balance,
    attach_shared_memory,
    attach_sites,
    attach_records,
    attach_messages,
    attach_bundles,
    attach_near_ranks,
    attach_losses,  // asks the neighbours
    attach_reports,
    introduce_myself,  // before the others are met, who read it
    attach_checkpoints,
    restore_if_asked,  // all handlers are there, and nothing has run
    wait_for_all,
    attach_all_programs,  // which all ranks have told of
    // These ask which ranks run this one's program.
    close_to_other_programs,
    balance_among_own_program,
    attach_steal,
};

void live() {
  for (void (*const step)() : first_steps) step();
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
    tell_of_settings();
    tell_of_forks();
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
  if (self.segment != nullptr) arrive();
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
    if (self.alone) watch_alone();
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
