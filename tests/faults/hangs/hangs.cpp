// SPDX-License-Identifier: Apache-2.0
// Programs that hang, each in its own way, and some that only seem to; hangs.sh says what must be
// said of them. Usage: hangs HOW
#include <unistd.h>
#include <sojourn/sojourn.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

using namespace sojourn;

namespace {

// Each function has a frame of its own on the stacks that are reported.
#define FRAME [[gnu::noinline]]
// Behind a function's last call, which otherwise takes the place of its frame.
void keep_frame() { asm volatile(""); }

rank_t after(rank_t rank) { return (rank + 1) % rank_count(); }

// A circle of calls: the last handler waits for the first one's result.
future<int> first;
FRAME int waits_for_the_first() {
  int result = first.get();
  asm volatile("" : "+r"(result));  // a call, not a jump
  return result;
}
FRAME int passes_on() {
  if (after(rank_me()) == 0) return rpc(0, waits_for_the_first).get() + 1;
  return rpc(after(rank_me()), passes_on).get() + 1;
}
FRAME void calls_in_a_circle() {
  if (rank_me() == 0) first = rpc(after(0), passes_on);
}

FRAME int passes_on_often(int times) {
  if (times == 0) return rpc(0, waits_for_the_first).get();
  return rpc(after(rank_me()), passes_on_often, times - 1).get() + 1;
}

// A body returns, on some ranks, once what hangs there has begun to.
bool begun = false;
FRAME void wait_until_begun() {
  while (!begun) yield();
}

// The handler waits in a barrier that its caller never joins.
FRAME int joins_the_barrier() {
  begun = true;
  barrier();
  return 1;
}
FRAME void asks_who_waits() { std::printf("%d\n", rpc(after(0), joins_the_barrier).get()); }

// The same with a sum that is under way, and a future that waits for it.
FRAME int joins_the_sum() {
  begun = true;
  auto meeting = barrier_async();
  auto sum = reduce_async(1, [](int a, int b) { return a + b; });
  meeting.get();
  return sum.get();
}
FRAME void asks_for_the_sum() {
  auto meeting = barrier_async();
  std::printf("%d\n", rpc(after(0), joins_the_sum).get());
}

// A computation of a finish waits for a handler on the rank of the finish, and that for a barrier.
FRAME void never_ends() {
  begun = true;
  rpc(0, joins_the_barrier).get();
}
FRAME void waits_for_all() {
  finish([] { rpc_ff(after(0), never_ends); });
}

// An activation that has moved waits where it is.
struct counter {
  long value = 0;
  FRAME long add(long n) { return value += n; }
};
// Set once main has left its first collective operation: a rank may have one fiber in such at a
// time.
bool main_has_left = false;
FRAME long visit(global_ptr<counter> there) {
  long value = there.call<&counter::add>(via::migrate, 1L);
  while (!main_has_left) yield();
  begun = true;
  barrier();
  return value;
}

volatile bool for_ever = true;
FRAME void computes_for_ever() {
  while (for_ever) {
  }
}
FRAME void computes_for(double seconds) {
  auto end = now_ns() + static_cast<std::uint64_t>(seconds * 1e9);
  while (now_ns() < end) {
  }
}
FRAME void sleeps() {
  while (for_ever) sleep(600);
}

// Two fibers of a rank lock two mutexes in different orders.
mutex left, right;
latch both_hold_one(2);
FRAME void locks_left_then_right() {
  std::lock_guard one(left);
  both_hold_one.arrive_and_wait();
  std::lock_guard other(right);
}
FRAME void locks_right_then_left() {
  std::lock_guard one(right);
  both_hold_one.arrive_and_wait();
  std::lock_guard other(left);
}
FRAME void waits_for_both() {
  auto one = rpc(rank_me(), locks_left_then_right);
  auto other = rpc(rank_me(), locks_right_then_left);
  one.get();
  other.get();
}

// What runs holds the mutex that another fiber of its rank waits for.
FRAME int locks_left() {
  std::lock_guard one(left);
  return 1;
}
FRAME void computes_with_the_mutex() {
  std::lock_guard one(left);
  auto other = rpc(rank_me(), locks_left);
  for (int i = 0; i < 10; ++i) yield();
  computes_for_ever();
  other.get();
}

// Nobody notifies, releases or counts down.
condition_variable changed;
FRAME void waits_for_a_change() {
  std::unique_lock lock(left);
  changed.wait(lock);
}
semaphore none(0);
FRAME void waits_for_a_place() {
  none.acquire();
  keep_frame();
}
shared::flag sign;
FRAME void waits_for_a_sign() {
  sign.wait();
  keep_frame();
}
shared::mutex guard_of_all;
shared::condition_variable changed_anywhere;
FRAME void waits_for_a_notification() {
  guard_of_all.lock();
  changed_anywhere.wait(guard_of_all);
  keep_frame();
}
shared::counted_barrier crossing;
FRAME void waits_for_company() {
  crossing.arrive_and_wait(2);
  keep_frame();
}
FRAME void waits_for_its_own_mutex() {
  guard_of_all.lock();
  guard_of_all.lock();
  keep_frame();
}

latch opened(1);
FRAME void waits_until_opened() {
  opened.wait();
  keep_frame();
}

// Two ranks lock two mutexes that all share, in the opposite order.
shared::mutex on_the_left;
shared::fair_mutex on_the_right;
FRAME void locks_the_other(shared::mutex& other) {
  other.lock();
  keep_frame();
}
FRAME void locks_one_and(shared::mutex& one, shared::mutex& other) {
  one.lock();
  barrier();
  locks_the_other(other);
}
void locks_in_a_circle() {
  if (rank_me() == 0) return locks_one_and(on_the_left, on_the_right);
  if (rank_me() == rank_count() - 1) return locks_one_and(on_the_right, on_the_left);
  barrier();
}

// Rank 0 keeps a mutex that the last rank wants.
FRAME void keeps(void (*while_it_has_it)()) {
  guard_of_all.lock();
  barrier();
  while_it_has_it();
}
FRAME void wants_what_is_kept() {
  barrier();
  guard_of_all.lock();
  keep_frame();
}
void one_keeps(void (*while_it_has_it)()) {
  if (rank_me() == 0) return keeps(while_it_has_it);
  if (rank_me() == rank_count() - 1) return wants_what_is_kept();
  barrier();
}
FRAME void waits_for_all_threads() {
  shared::barrier();
  keep_frame();
}
FRAME void locks_and_ends() {
  guard_of_all.lock();
  keep_frame();
}
// It waits in the condition variable, and has not locked the mutex again: so it does not hold it.
FRAME void lets_go_and_ends() {
  guard_of_all.lock();
  spawn_on(rank_me(), thread_options{}, [] {
    guard_of_all.lock();
    changed_anywhere.notify_all();
    guard_of_all.unlock();
  }).detach();
  changed_anywhere.wait(guard_of_all);
  guard_of_all.unlock();
  locks_and_ends();
}

// The last thread of all never comes to the barrier at the end.
FRAME void last_thread_stays_away() {
  shared::run_threads(2, [](int number) {
    if (number == shared::threads() - 1) waits_until_opened();
  });
  keep_frame();
}
FRAME void waits_for_either() {
  auto one = rpc(rank_me(), waits_for_a_place);
  auto other = rpc(rank_me(), waits_for_a_place);
  (void)touch_any(one, other);
  keep_frame();
}
FRAME void waits_to_be_made() {
  (void)dist_id<int>(sojourn::detail::dist_key{1, 1}).here();
  keep_frame();
}

// Threads that have names. Whatever a name holds, it stays on its line.
FRAME void starts_a_sleeper() {
  spawn_on(rank_me(), thread_options{.name = "sleeper"}, waits_until_opened).join();
  keep_frame();
}
FRAME void starts_an_odd_one() {
  spawn_on(rank_me(), thread_options{.name = "an \"odd\"\n\xff one of 23 ch"}, waits_until_opened)
      .join();
  keep_frame();
}
FRAME void starts_a_runner() {
  spawn_on(rank_me(), thread_options{.name = "runner"}, computes_for_ever).join();
  keep_frame();
}

// Something happens, later.
FRAME void sleeps_for(double seconds) {
  sleep_for(std::chrono::duration<double>(seconds));
  keep_frame();
}
FRAME void waits_for_a_while() {
  std::unique_lock lock(left);
  changed.wait_for(lock, std::chrono::milliseconds(1500));
}

// Two computations of each rank take turns at a lock that one of them holds while it waits.
std::mutex held;
FRAME int holds_the_lock() {
  std::lock_guard<std::mutex> guard(held);
  return rpc(after(rank_me()), [] { return 1; }).get();
}
FRAME void locks_twice() {
  auto a = rpc(rank_me(), holds_the_lock);
  auto b = rpc(rank_me(), holds_the_lock);
  a.get();
  b.get();
}

FRAME void reads_what_nobody_writes() {
  int ends[2];
  char byte;
  if (pipe(ends) == 0 && read(ends[0], &byte, 1) == 1) std::abort();
}
FRAME void polls() {
  while (for_ever) yield();
}
FRAME void polls_a_flag(global_ptr<long> flag) {
  while (load(flag) == 0) yield();
}

// Nothing hangs, but all wait for long, for ranks that seldom come to their messages.
FRAME int answers_late(int times) {
  computes_for(0.15);
  {
    std::lock_guard one(left);
    sleeps_for(0.01);
  }
  return times == 0 ? 0 : rpc(after(rank_me()), answers_late, times - 1).get() + 1;
}

// Something always happens, though what the job is for stands still.
FRAME void beats() {
  while (for_ever) sleep_for(std::chrono::milliseconds(20));
}
}  // namespace

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  auto is = [how](const char* name) { return std::strcmp(how, name) == 0; };
  return run(argc, argv, [&] {
    rank_t last_rank = rank_count() - 1;
    bool last = rank_me() == last_rank;
    // For a test that looks at the job while it runs, however late that begins.
    if (const char* file = std::getenv("HANGS_BEGUN"); file && last) {
      if (std::FILE* created = std::fopen(file, "w")) std::fclose(created);
    }
    if (is("circle")) {
      calls_in_a_circle();
    } else if (is("barrier_in_handler")) {
      if (rank_me() == 0) asks_who_waits();
      if (rank_me() == 1) wait_until_begun();
      if (rank_me() > 1) barrier();
    } else if (is("under_way")) {
      if (rank_me() == 0) asks_for_the_sum();
      if (rank_me() == 1) wait_until_begun();
      if (rank_me() > 1) {
        barrier();
        (void)reduce_async(1, [](int a, int b) { return a + b; }).get();
      }
    } else if (is("finish")) {
      if (rank_me() == 0) waits_for_all();
      if (rank_me() == 1) wait_until_begun();
      if (rank_me() > 1) barrier();
    } else if (is("visit")) {
      auto there = broadcast(make<counter>(rank_count() - 1));
      main_has_left = true;
      if (rank_me() == 0) activate(visit, there);
      if (last) wait_until_begun();
    } else if (is("end")) {
      if (!last) barrier();
    } else if (is("computes")) {
      if (last) computes_for_ever();
      barrier();
    } else if (is("sleeps")) {
      if (last) sleeps();
      barrier();
    } else if (is("mutexes")) {
      if (last) waits_for_both();
      barrier();
    } else if (is("mutex_and_computes")) {
      if (last) computes_with_the_mutex();
      barrier();
    } else if (is("condition")) {
      if (last) waits_for_a_change();
    } else if (is("semaphore")) {
      if (last) waits_for_a_place();
    } else if (is("latch")) {
      if (last) waits_until_opened();
    } else if (is("shared_flag")) {
      if (last) waits_for_a_sign();
    } else if (is("shared_condition_variable")) {
      if (last) waits_for_a_notification();
    } else if (is("shared_counted_barrier")) {
      if (last) waits_for_company();
    } else if (is("shared_mutex")) {
      if (last) waits_for_its_own_mutex();
    } else if (is("shared_circle")) {
      locks_in_a_circle();
    } else if (is("shared_circle_and_beats")) {
      if (rank_me() == 0) spawn_on(0, thread_options{}, beats).detach();
      locks_in_a_circle();
    } else if (is("shared_kept")) {
      one_keeps(waits_for_all_threads);
    } else if (is("shared_kept_and_computes")) {
      one_keeps(computes_for_ever);
    } else if (is("shared_kept_by_ended")) {
      if (rank_me() == 0) spawn_on(0, thread_options{}, lets_go_and_ends).join();
      barrier();
      if (last) locks_the_other(guard_of_all);
    } else if (is("shared_barrier")) {
      if (!last) waits_for_all_threads();
    } else if (is("shared_barriers_differ")) {
      if (last)
        joins_the_barrier();
      else
        waits_for_all_threads();
    } else if (is("shared_threads")) {
      last_thread_stays_away();
    } else if (is("first")) {
      if (last) waits_for_either();
    } else if (is("dist_object")) {
      if (last) waits_to_be_made();
    } else if (is("named")) {
      if (last) starts_a_sleeper();
    } else if (is("named_oddly")) {
      if (last) starts_an_odd_one();
    } else if (is("named_and_computes")) {
      if (last) starts_a_runner();
      barrier();
    } else if (is("sleeps_long")) {
      if (last) sleeps_for(600);
      barrier();
    } else if (is("sleepers")) {
      if (last) sleeps_for(1.5);
      barrier();
      waits_for_a_while();
    } else if (is("sleep_then_circle")) {
      if (last) sleeps_for(0.5);
      barrier();
      calls_in_a_circle();
    } else if (is("locks")) {
      locks_twice();
    } else if (is("circle_and_beats")) {
      if (rank_me() == 0) spawn(beats).detach();
      calls_in_a_circle();
    } else if (is("mutexes_and_beats")) {
      if (last) rpc_ff(rank_me(), waits_for_both);
      beats();
    } else if (is("computes_and_beats")) {
      if (rank_me() == 0) spawn(beats).detach();
      if (last) computes_for_ever();
      barrier();
    } else if (is("answers_late")) {
      if (rpc(after(rank_me()), answers_late, 10).get() != 10) std::abort();
    } else if (is("beats")) {
      if (rank_me() == 0) {
        // All ranks have joined.
        std::puts("beats");
        std::fflush(stdout);
        beats();
      }
      barrier();
    } else if (is("polls_a_flag")) {
      auto flag = broadcast(make<long>(0, 0L));
      if (last) polls_a_flag(flag);
      barrier();
    } else if (is("reads")) {
      reads_what_nobody_writes();
    } else if (is("polls")) {
      polls();
    } else if (is("polls_for_one")) {
      if (last) computes_for_ever();
      polls();
    } else if (is("calls_a_lambda")) {
      if (rank_me() == 0) rpc(last_rank, [] { computes_for_ever(); }).get();
      barrier();
    } else if (is("many")) {
      if (rank_me() == 0) first = rpc(0, passes_on_often, 1000);
    } else if (is("all_compute")) {
      computes_for(2);
    } else if (is("calls")) {
      std::uint64_t end = now_ns() + 3'000'000'000u;
      for (bool on = true; on;) {
        for (int i = 0; i < 100; ++i) {
          if (rpc(after(rank_me()), [] { return 1; }).get() != 1) std::abort();
        }
        if (rank_me() == 0) usleep(20'000);
        on = broadcast(now_ns() < end);
      }
    } else if (is("bursts")) {
      for (int i = 0; i < 6; ++i) {
        if (i % rank_count() == rank_me()) computes_for(0.5);
        barrier();
      }
    } else {
      std::fprintf(stderr, "there is no hang '%s'\n", how);
      return 2;
    }
    return 0;
  });
}
