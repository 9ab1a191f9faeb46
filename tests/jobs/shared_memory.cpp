// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks share: what one stores, others load behind a lock or a barrier.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <sojourn/sojourn.hpp>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t page = 4096;

/// The same address on all ranks: allocated on one.
template <class T>
T* alloc_on(rank_t rank, std::size_t count) {
  std::uintptr_t at = 0;
  if (rank_me() == rank) at = reinterpret_cast<std::uintptr_t>(shared::alloc<T>(count));
  return reinterpret_cast<T*>(broadcast(at, rank));
}

void memory_is_zero_and_ranks_see_what_others_stored_before_a_barrier() {
  constexpr std::size_t count = 40 * page / sizeof(int);
  int* all = alloc_on<int>(0, count);
  CHECK(all[17] == 0 && all[count - 1] == 0);
  shared::barrier();
  const auto ranks = static_cast<std::size_t>(rank_count());
  for (std::size_t i = static_cast<std::size_t>(rank_me()); i < count; i += ranks)
    all[i] = static_cast<int>(i) + 1;
  shared::barrier();
  for (std::size_t i = 0; i < count; ++i) CHECK(all[i] == static_cast<int>(i) + 1);
  shared::barrier();
}

void neighbouring_bytes_may_be_stored_to_at_the_same_time() {
  auto* bytes = alloc_on<unsigned char>(rank_count() - 1, 3 * page);
  for (int round = 1; round <= 20; ++round) {
    for (std::size_t i = static_cast<std::size_t>(rank_me()); i < 3 * page;
         i += static_cast<std::size_t>(rank_count()))
      bytes[i] = static_cast<unsigned char>(round + static_cast<int>(i));
    shared::barrier();
    for (std::size_t i = 0; i < 3 * page; ++i)
      CHECK(bytes[i] == static_cast<unsigned char>(round + static_cast<int>(i)));
    shared::barrier();
  }
}

/// The sentence with which that is refused.
std::string refused(std::size_t bytes) {
  try {
    (void)shared::allocate(bytes);
  } catch (const std::bad_alloc& e) {
    return e.what();
  }
  return "";
}

void a_part_that_is_full_is_told_with_a_remedy() {
  const std::string rank = "on rank " + std::to_string(rank_me()) + ": of the ";
  CHECK(refused(shared::capacity() + 1).find(rank) != std::string::npos);
  CHECK(refused(~std::size_t{0}).find("let other ranks allocate, too") != std::string::npos);
  bool caught = false;
  try {
    struct large {
      char bytes[1u << 20];
    };
    (void)shared::alloc<large>(std::size_t{1} << 44);
  } catch (const shared::exhausted&) {
    caught = true;
  }
  CHECK(caught);
  // Nothing is touched, so this takes no memory.
  std::vector<void*> all;
  const std::size_t block = shared::capacity() / 8;
  try {
    for (;;) all.push_back(shared::allocate(block));
  } catch (const shared::exhausted& e) {
    CHECK(std::string(e.what()).find(rank) != std::string::npos);
  }
  CHECK(all.size() == 7 || all.size() == 8);
  for (void* p : all) shared::free(p);
  CHECK(refused(3 * page).empty());
}

void a_rank_can_start_other_programs() {
  const auto me = static_cast<std::size_t>(rank_me());
  int* all = alloc_on<int>(0, 1024 * static_cast<std::size_t>(rank_count()));
  int& mine = all[1024 * me];
  mine = 7;
  shared::barrier();
  CHECK_EQUAL(std::system("exit 3"), 3 << 8);
  // A child that uses its own memory until it calls exec.
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 4", nullptr);
    _exit(1);
  }
  ++mine;
  int status = 0;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 4 << 8);
  shared::barrier();
  for (std::size_t r = 0; r < static_cast<std::size_t>(rank_count()); ++r)
    CHECK_EQUAL(all[1024 * r], 8);
  shared::barrier();
}

struct counter {
  shared::mutex m;
  long value;
};

void a_mutex_guards_a_counter() {
  auto* c = static_cast<counter*>(static_cast<void*>(alloc_on<unsigned char>(0, sizeof(counter))));
  constexpr int times = 300;
  for (int i = 0; i < times; ++i) {
    c->m.lock();
    ++c->value;
    c->m.unlock();
  }
  shared::barrier();
  CHECK(c->value == times * rank_count());
  shared::barrier();
}

shared::mutex global_mutex;

void a_mutex_may_be_a_global_variable() {
  long* value = alloc_on<long>(0, 1);
  for (int i = 0; i < 50; ++i) {
    global_mutex.lock();
    *value += 2;
    global_mutex.unlock();
  }
  shared::barrier();
  CHECK(*value == 100 * rank_count());
  shared::barrier();
}

void threads_of_all_ranks_share_memory() {
  for (const int threads : {1, 3, 8}) {
    const int all = threads * rank_count();
    long* sums = alloc_on<long>(0, static_cast<std::size_t>(all) * 100);
    counter* c =
        static_cast<counter*>(static_cast<void*>(alloc_on<unsigned char>(0, sizeof(counter))));
    if (rank_me() == 0) c->value = 1000;  // Seen by the threads: they begin afterwards.
    shared::run_threads(threads, [=](int number) {
      CHECK(shared::threads() == all && shared::thread() == number);
      CHECK(number / threads == rank_me());
      CHECK(c->value >= 1000);
      for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 100; ++i) sums[number * 100 + i] += number + round;
        c->m.lock();
        c->value += number;
        c->m.unlock();
        shared::barrier();
        const int next = (number + 1) % all;
        CHECK(sums[next * 100 + 99] >= next);
        shared::barrier();
      }
    });
    for (int n = 0; n < all; ++n) CHECK(sums[n * 100 + 7] == 5 * n + 10);
    CHECK(c->value == 1000 + 5 * (all - 1) * all / 2);
    shared::barrier();
    CHECK(shared::threads() == rank_count() && shared::thread() == rank_me());
  }
}

void what_a_thread_throws_is_thrown_again() {
  bool caught = false;
  try {
    shared::run_threads(2, [](int number) {
      if (number % 2 == 1) throw std::runtime_error("odd");
    });
  } catch (const std::runtime_error& e) {
    caught = std::strcmp(e.what(), "odd") == 0;
  }
  CHECK(caught);
}

/// Whether run_threads() of so many throws exactly this; nothing is begun then.
bool refuses_threads(int threads, const std::string& sentence) {
  try {
    shared::run_threads(threads, [](int) { CHECK(false); });
  } catch (const error& e) {
    return e.what() == sentence;
  }
  return false;
}

void numbers_of_threads_that_differ_are_told() {
  CHECK(refuses_threads(0, "shared::run_threads() of 0 threads: start at least one"));
  if (rank_count() == 1) return;
  for (const int first_number : {1, 3, 0}) {
    const auto passes = [](int rank, int threads) {
      return "rank " + std::to_string(rank) + " passes " + std::to_string(threads);
    };
    const std::string one = passes(0, first_number);
    const std::string other = passes(1, 2);
    CHECK(refuses_threads(rank_me() == 0 ? first_number : 2,
                          "shared::run_threads() with different numbers of threads: " +
                              (first_number < 2 ? one + " and " + other : other + " and " + one) +
                              "; pass the same number on all ranks"));
    CHECK(shared::threads() == rank_count());
    shared::barrier();
  }
  int begun = 0;
  shared::run_threads(2, [&](int) { ++begun; });
  CHECK(begun == 2);
}

void freed_memory_comes_back_as_zeros() {
  for (int round = 0; round < 3; ++round) {
    auto* p = alloc_on<std::uint64_t>(rank_count() - 1, 5 * page / 8);
    shared::barrier();
    for (std::size_t i = 0; i < 5 * page / 8; ++i) CHECK(p[i] == 0);
    shared::barrier();
    if (rank_me() == 0) std::fill_n(p, 5 * page / 8, 7);
    shared::barrier();
    if (rank_me() == 0) shared::free(p);
    barrier();
  }
}

void containers_lie_in_shared_memory() {
  using vector = shared::vector<int>;
  void* place = alloc_on<unsigned char>(0, sizeof(vector));
  auto* v = static_cast<vector*>(place);
  if (rank_me() == 0) {
    ::new (place) vector;
    for (int i = 0; i < 5000; ++i) v->push_back(i);
  }
  shared::barrier();
  CHECK(v->size() == 5000);
  CHECK(std::accumulate(v->begin(), v->end(), 0L) == 5000L * 4999 / 2);
  shared::barrier();
}

void a_page_leaves_while_its_fiber_waits_for_something_else() {
  for (int round = 0; round < 50; ++round) {
    int* p = alloc_on<int>(0, 2);
    // Different words of one page; nothing but the page is shared until the barrier.
    if (rank_me() == 1 % rank_count()) p[1] = round;
    if (rank_me() == 0) CHECK(p[0] == 0);
    barrier();
  }
}

/// The same address on all ranks, under lmw.
long* words_on(rank_t rank, std::size_t count) {
  shared::pointer<long> at;
  if (rank_me() == rank) at = shared::alloc<long>(count, shared::protocol::lmw);
  return broadcast(at, rank).get();
}

void a_page_that_others_read_comes_as_what_has_changed() {
  constexpr int rounds = 40;
  long* words = words_on(0, page / sizeof(long));
  volatile long* const word = &words[7];
  shared::barrier();
  std::uint64_t before = 0;
  for (int round = 1; round <= rounds; ++round) {
    // At first nobody has it, and neighbours come with it.
    if (round == 5) before = shared::counters_now().pages_fetched;
    if (rank_me() == 0) *word = round;
    shared::barrier();
    CHECK_EQUAL(*word, round);
    shared::barrier();
  }
  // Where diffs are thrown away at every turn, pages come in their place.
  if (std::getenv("SOJOURN_SHARED_DIFFS") == nullptr)
    CHECK(shared::counters_now().pages_fetched - before <= 3);
  shared::barrier();
}

void what_others_store_is_not_taken_in_before_all_have_arrived() {
  long* words = words_on(0, page / sizeof(long));
  volatile long* const word = &words[7];
  for (int round = 0; round < 5; ++round) {
    if (rank_me() == rank_count() - 1) ++words[8];
    shared::barrier();
    (void)*word;
    if (rank_me() == rank_count() - 1) ++words[8];
    if (rank_me() == 0 && rank_count() > 1) {
      // The others arrive meanwhile, with notices of this page.
      const std::uint64_t before = shared::counters_now().faults_remote;
      for (int i = 0; i < 1000; ++i) {
        yield();
        (void)*word;
      }
      // Collections happen at barriers of their own, at any time.
      if (std::getenv("SOJOURN_SHARED_DIFFS") == nullptr)
        CHECK_EQUAL(shared::counters_now().faults_remote, before);
    }
    shared::barrier();
    CHECK_EQUAL(words[8], 2 * round + 2);
    shared::barrier();
  }
}

void calls_on_shared_memory_work_in_handlers() {
  int* p = alloc_on<int>(0, 3 * page);
  if (rank_me() == 0) p[2 * page] = 44;
  shared::barrier();
  if (rank_me() == 0) {
    const rank_t last = rank_count() - 1;
    CHECK(rpc(
              last, [](std::uintptr_t at) { return *reinterpret_cast<int*>(at); },
              reinterpret_cast<std::uintptr_t>(p + 2 * page))
              .get() == 44);
  }
  shared::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    check::claim("memory is zero and ranks see what others stored before a barrier",
                 memory_is_zero_and_ranks_see_what_others_stored_before_a_barrier);
    check::claim("neighbouring bytes may be stored to at the same time",
                 neighbouring_bytes_may_be_stored_to_at_the_same_time);
    check::claim("a mutex guards a counter", a_mutex_guards_a_counter);
    check::claim("a mutex may be a global variable", a_mutex_may_be_a_global_variable);
    check::claim("threads of all ranks share memory", threads_of_all_ranks_share_memory);
    check::claim("what a thread throws is thrown again", what_a_thread_throws_is_thrown_again);
    check::claim("numbers of threads that differ are told",
                 numbers_of_threads_that_differ_are_told);
    check::claim("freed memory comes back as zeros", freed_memory_comes_back_as_zeros);
    check::claim("containers lie in shared memory", containers_lie_in_shared_memory);
    check::claim("a page leaves while its fiber waits for something else",
                 a_page_leaves_while_its_fiber_waits_for_something_else);
    check::claim("a page that others read comes as what has changed",
                 a_page_that_others_read_comes_as_what_has_changed);
    check::claim("what others store is not taken in before all have arrived",
                 what_others_store_is_not_taken_in_before_all_have_arrived);
    check::claim("calls on shared memory work in handlers",
                 calls_on_shared_memory_work_in_handlers);
    check::claim("a rank can start other programs", a_rank_can_start_other_programs);
    check::claim("a part that is full is told with a remedy",
                 a_part_that_is_full_is_told_with_a_remedy);
    return check::verdict();
  });
}
