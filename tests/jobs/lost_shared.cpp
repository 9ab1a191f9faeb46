// SPDX-License-Identifier: Apache-2.0
// A rank that dies while others use memory that it shares with them, in the way the argument says.
// lost_shared.sh reads what the others say.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string_view>

#include "sojourn/sojourn.hpp"

namespace {

using namespace sojourn;

constexpr rank_t victim = 1;
constexpr std::size_t page = 4096;

shared::mutex of_victim;
shared::mutex of_each[8];
/// A page that the victim has stored to, then one for each rank, which has stored to it.
long* pages;
/// Allocated by the victim.
long* block;

struct objects {
  shared::flag flag;
  shared::atomic<int> atomic;
  shared::counted_barrier barrier;
  shared::condition_variable condition;
  shared::mutex guard;
};
/// Kept by each rank.
objects* of_rank[8];
objects& mine() { return *of_rank[rank_me()]; }
/// The victim answers nothing from now on.
bool victim_is_deaf = false;

long& word_of(rank_t rank) {
  return pages[static_cast<std::size_t>(1 + rank) * page / sizeof(long)];
}

/// Returns when the loss is known here.
void outlive_the_victim() {
  try {
    rpc(victim, [] { sleep_for(std::chrono::seconds(30)); }).get();
  } catch (const rank_lost&) {
    return;
  }
}

void die_deaf() {
  // Others ask this rank for something meanwhile, in vain: it does not hear the doorbell either.
  sigset_t bell;
  sigemptyset(&bell);
  sigaddset(&bell, SIGURG);
  pthread_sigmask(SIG_BLOCK, &bell, nullptr);
  // The last that it does. Were the others to ask before, it might still have answered them.
  rpc_ff(rank_t{0}, [] {
    for (rank_t r = 0; r < rank_count(); ++r)
      if (r != victim) rpc_ff(r, [] { victim_is_deaf = true; });
  });
  const std::uint64_t end = now_ns() + 50'000'000;
  while (now_ns() < end) {
  }
  std::raise(SIGKILL);
}

void die(std::string_view how) {
  if (how.ends_with("_deaf")) die_deaf();
  sleep_for(std::chrono::milliseconds(20));
  std::raise(SIGKILL);
}

/// Tries something that needs the victim.
template <class Fn>
void fails(const char* what, Fn fn) {
  try {
    fn();
    std::printf("rank %d: %s: nothing was lost\n", rank_me(), what);
  } catch (const rank_lost& e) {
    std::printf("rank %d: %s: lost %d: %s\n", rank_me(), what, e.rank(), e.what());
  }
}

void use_own_objects() {
  mine().flag.set();
  mine().flag.wait();
  if (mine().atomic.fetch_add(2) != 10 || mine().atomic.load() != 12 || !mine().flag.is_set())
    std::printf("rank %d: its own objects are not what they were\n", rank_me());
  mine().flag.clear();
  fails("own flag", [] { mine().flag.wait(); });
  fails("own barrier", [] { mine().barrier.arrive_and_wait(2); });
  mine().barrier.arrive_and_wait(1);
  mine().condition.notify_all();
  fails("notify", [] { of_rank[victim]->condition.notify_all(); });
}

void use_what_is_here() {
  long* mine = shared::alloc<long>(1000);
  mine[999] = 1;
  shared::free(mine);
  shared::mutex& m = of_each[rank_me()];
  m.lock();
  word_of(rank_me()) += 100;
  m.unlock();
  std::printf("rank %d: %ld is here\n", rank_me(), word_of(rank_me()));
}

void use(std::string_view how) {
  if (how == "mutex" || how == "mutex_deaf") {
    // Several wait at the same time.
    thread other = spawn([] { of_victim.lock(); });
    fails("waits", [] { of_victim.lock(); });
    fails("another", [&] { other.join(); });
    fails("later", [] { of_victim.lock(); });
    use_what_is_here();
  }
  if (how == "objects" || how == "objects_deaf") {
    // Each in a fiber that waits when the loss becomes known.
    objects& lost = *of_rank[victim];
    thread at_flag = spawn([] { of_rank[victim]->flag.wait(); });
    thread at_own_flag = spawn([] { mine().flag.wait(); });
    thread at_barrier = spawn([] { of_rank[victim]->barrier.arrive_and_wait(30); });
    thread at_condition = spawn([] {
      mine().guard.lock();
      // It waits in what the victim keeps; the mutex is here, and is unlocked again.
      const std::lock_guard unlocks(mine().guard, std::adopt_lock);
      of_rank[victim]->condition.wait(mine().guard);
    });
    fails("waits", [&] { lost.flag.wait(); });
    fails("flag", [&] { at_flag.join(); });
    fails("own", [&] { at_own_flag.join(); });
    fails("counted barrier", [&] { at_barrier.join(); });
    fails("condition", [&] { at_condition.join(); });
    fails("later", [&] { lost.atomic.load(); });
    fails("set", [&] { lost.flag.set(); });
    mine().guard.lock();
    mine().guard.unlock();
    use_own_objects();
    use_what_is_here();
  }
  if (how == "barrier") {
    fails("waits", [] { shared::barrier(); });
    fails("later", [] { shared::barrier(); });
    use_what_is_here();
  }
  if (how == "start") {
    fails("waits", [] { shared::run_threads(2, [](int) { shared::barrier(); }); });
    fails("later", [] { shared::run_threads(2, [](int) {}); });
    use_what_is_here();
  }
  if (how == "free") {
    outlive_the_victim();
    fails("later", [] { shared::free(block); });
    use_what_is_here();
  }
  if (how == "page_deaf") {
    while (!victim_is_deaf) sleep_for(std::chrono::milliseconds(1));
    std::printf("rank %d: %ld\n", rank_me(), *pages);
  }
  if (how == "page_later") {
    outlive_the_victim();
    use_what_is_here();
    std::fflush(stdout);
    // Rank 0 has allocated it.
    *pages = 7;
    std::printf("rank %d: has stored\n", rank_me());
  }
}

void meet(std::string_view how) {
  std::uintptr_t at = 0;
  const auto bytes = static_cast<std::size_t>(rank_count() + 1) * page;
  if (rank_me() == 0) at = reinterpret_cast<std::uintptr_t>(shared::alloc<long>(bytes / 8));
  pages = reinterpret_cast<long*>(broadcast(at, 0));
  if (rank_me() == victim) at = reinterpret_cast<std::uintptr_t>(shared::alloc<long>());
  block = reinterpret_cast<long*>(broadcast(at, victim));
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (rank_me() == r) at = reinterpret_cast<std::uintptr_t>(shared::alloc<objects>());
    of_rank[r] = reinterpret_cast<objects*>(broadcast(at, r));
  }
  mine().atomic.store(10);
  mine().guard.lock();
  mine().guard.unlock();
  word_of(rank_me()) = rank_me();
  of_each[rank_me()].lock();
  of_each[rank_me()].unlock();
  if (rank_me() == victim) {
    *pages = 5;
    of_victim.lock();
  }
  shared::barrier();
  if (how == "start" && rank_me() == victim) shared::run_threads(2, [](int) { die(""); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "mutex";
  const bool uncaught = argc > 2;
  return run(argc, argv, [=] {
    meet(how);
    if (rank_me() == victim) die(how);
    if (uncaught) shared::barrier();
    use(how);
    std::fflush(stdout);
    sleep_for(std::chrono::milliseconds(200));  // others may still fail
    return 0;
  });
}
