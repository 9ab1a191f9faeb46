// SPDX-License-Identifier: Apache-2.0
// Calls, answers and moves order accesses to shared memory, and read and write their arguments and
// results there.
#include <cstdint>
#include <functional>
#include <mutex>
#include <numeric>
#include <sojourn/sojourn.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"

namespace {

using namespace sojourn;

constexpr std::size_t page = 4096;
constexpr std::size_t page_ints = page / sizeof(int);

/// The same address on all ranks: allocated on one.
template <class T>
shared::pointer<T> alloc_on(rank_t rank, std::size_t count) {
  shared::pointer<T> at;
  if (rank_me() == rank) at = shared::alloc<T>(count);
  return broadcast(at, rank);
}

rank_t next_rank() { return (rank_me() + 1) % rank_count(); }

void a_call_sees_what_its_caller_stored_and_the_caller_what_the_method_stored() {
  const auto cell = alloc_on<int>(rank_count() - 1, 2 * page_ints);
  if (rank_me() == 0)
    for (int i = 1; i <= 200; ++i) {
      cell[0] = i;
      cell[page_ints] = -i;
      const int seen = rpc(
                           i % rank_count(),
                           [](shared::pointer<int> c) {
                             c[page_ints] = 2 * c[page_ints];
                             return c[0]++;
                           },
                           cell)
                           .get();
      CHECK_EQUAL(seen, i);
      CHECK_EQUAL(cell[0], i + 1);
      CHECK_EQUAL(cell[page_ints], -2 * i);
    }
  shared::barrier();
}

int through_all_ranks(shared::pointer<int> cell, int hops) {
  for (int i = 0; i < hops; ++i) {
    (void)migrate_to(next_rank());
    ++*cell;
  }
  return *cell;
}

void an_activation_reads_its_own_stores_wherever_it_goes() {
  const auto cell = alloc_on<int>(0, 1);
  if (rank_me() == rank_count() - 1) {
    CHECK_EQUAL(activate(through_all_ranks, cell, 100), 100);
    CHECK_EQUAL(*cell, 100);
  }
  shared::barrier();
}

void a_thread_brings_what_it_stored_and_who_joins_it_sees_it() {
  const auto cell = alloc_on<int>(0, 1);
  if (rank_me() == 0) {
    for (int round = 0; round < 30; ++round) {
      *cell = round;
      thread t = spawn_on(
          next_rank(),
          [](shared::pointer<int> c, int expected) {
            CHECK_EQUAL(*c, expected);
            for (int i = 0; i < rank_count(); ++i) {
              *c += 1000;
              (void)migrate_to(next_rank());
            }
          },
          cell, round);
      t.join();
      CHECK_EQUAL(*cell, round + 1000 * rank_count());
    }
  }
  shared::barrier();
}

void a_chain_of_calls_orders_through_all_its_ranks() {
  const auto cell = alloc_on<int>(0, 1);
  struct visit {
    static int on(shared::pointer<int> c, int left) {
      *c = *c * 2 + 1;
      if (left == 0) return *c;
      return rpc(next_rank(), visit::on, c, left - 1).get();
    }
  };
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (rank_me() == r) {
      *cell = 0;
      CHECK_EQUAL(visit::on(cell, 12), (1 << 13) - 1);
      CHECK_EQUAL(*cell, (1 << 13) - 1);
    }
    barrier();  // Of the job: it orders as well.
  }
}

void collective_operations_order() {
  const auto cells = alloc_on<int>(0, 64 * page_ints);
  for (int round = 1; round <= 50; ++round) {
    cells[static_cast<std::size_t>(rank_me()) * page_ints] = round * (rank_me() + 1);
    const int sum = reduce(0, std::plus<>());
    CHECK_EQUAL(sum, 0);
    for (rank_t r = 0; r < rank_count(); ++r)
      CHECK_EQUAL(cells[static_cast<std::size_t>(r) * page_ints], round * (r + 1));
    barrier();
  }
}

void the_end_of_a_finish_sees_what_its_calls_stored() {
  const auto cells = alloc_on<int>(0, 64);
  if (rank_me() == 0) {
    finish([&] {
      for (rank_t r = 0; r < rank_count(); ++r)
        rpc_ff(
            r,
            [](shared::pointer<int> c) {
              c[rank_me()] = rank_me() + 7;
              rpc_ff(next_rank(), [](shared::pointer<int> mine) { mine[32 + rank_me()] = 5; }, c);
            },
            cells);
    });
    for (rank_t r = 0; r < rank_count(); ++r) {
      CHECK_EQUAL(cells[r], r + 7);
      CHECK_EQUAL(cells[32 + r], 5);
    }
  }
  shared::barrier();
}

void bundled_calls_order() {
  const auto cells = alloc_on<int>(0, 1000);
  if (rank_me() == 0) {
    for (int round = 1; round <= 5; ++round) {
      finish([&] {
        const aggregated bundle;
        for (int i = 0; i < 1000; ++i) {
          cells[i] = i * round;
          rpc_ff(
              next_rank(),
              [](shared::pointer<int> c, int at, int value) {
                CHECK_EQUAL(c[at], value);
                c[at] = -1;
              },
              cells, i, cells[i]);
        }
      });
      for (int i = 0; i < 1000; ++i) CHECK_EQUAL(cells[i], -1);
    }
  }
  shared::barrier();
}

/// What a rank has not here, it fetches while it writes the message.
void arguments_and_results_may_lie_on_pages_that_are_elsewhere() {
  constexpr std::size_t count = 20 * page_ints;
  const auto numbers = alloc_on<int>(0, count);
  const auto text = alloc_on<char>(0, 3 * page);
  for (int round = 0; round < 10; ++round) {
    if (rank_me() == rank_count() - 1) {
      std::iota(numbers.get(), numbers.get() + count, round);
      std::fill_n(text.get(), 3 * page, static_cast<char>('a' + round));
    }
    shared::barrier();
    const long sum = std::accumulate(numbers.get() + 3, numbers.get() + 3, 0L);
    CHECK_EQUAL(sum, 0);
    // Several fibers write messages to the same rank at a time.
    std::vector<future<long>> sums;
    for (int i = 0; i < 8; ++i)
      sums.push_back(rpc(
          next_rank(),
          [](std::span<const int> all, int first, std::string_view letters) {
            long s = first;
            for (int x : all) s += x;
            return s + static_cast<long>(letters.size()) * letters.front();
          },
          std::span<const int>(numbers.get(), count), numbers[page_ints * 7],
          std::string_view(text.get(), 3 * page)));
    const long first = round, n = static_cast<long>(count);
    const long right = n * first + n * (n - 1) / 2 + first + 7 * static_cast<long>(page_ints) +
                       static_cast<long>(3 * page) * ('a' + round);
    for (auto& s : sums) CHECK_EQUAL(s.get(), right);
    const auto back =
        rpc(
            next_rank(), [](shared::pointer<char> t) { return std::string(t.get(), 3 * page); },
            text)
            .get();
    CHECK_EQUAL(back, std::string(3 * page, static_cast<char>('a' + round)));
    shared::barrier();
  }
}

void a_call_right_behind_a_barrier_finds_its_rank_behind_it_too() {
  const auto cells = alloc_on<int>(0, 64 * page_ints);
  for (int round = 1; round <= 100; ++round) {
    cells[static_cast<std::size_t>(rank_me()) * page_ints] = round;
    shared::barrier();
    const int seen = rpc((rank_me() + round) % rank_count(),
                         [](shared::pointer<int> c, int r) {
                           return c[static_cast<std::size_t>(r) * page_ints];
                         },
                         cells, (rank_me() + 2 * round) % rank_count())
                         .get();
    CHECK_EQUAL(seen, round);
    shared::barrier();
  }
}

void meet_on_other_ranks(int number, shared::pointer<int> cells) {
  for (int round = 1; round <= 20; ++round) {
    cells[number * 5] = round + number;
    if ((round + number) % 3 == 0) CHECK(migrate_to((rank_me() + round) % rank_count()));
    shared::barrier();
    CHECK_EQUAL(shared::thread(), number);
    const int other = (number + round) % shared::threads();
    CHECK_EQUAL(cells[other * 5], round + other);
    shared::barrier();
  }
}

void threads_of_start_meet_wherever_they_have_moved() {
  const auto cells = alloc_on<int>(0, 64 * page_ints);
  shared::run_threads(3, meet_on_other_ranks, cells);
  // An activation may meet the others, too, and come back.
  shared::run_threads(2, [=](int number) {
    const auto visit = [](int mine, shared::pointer<int> all, int round) {
      if ((round + mine) % 2 == 0) (void)migrate_to((mine + round) % rank_count());
      all[mine] = mine * round;
      shared::barrier();
      const int other = (mine + 1) % shared::threads();
      CHECK_EQUAL(all[other], other * round);
      shared::barrier();
      return rank_me();
    };
    for (int round = 0; round < 20; ++round)
      CHECK_EQUAL(activate(visit, number, cells, round),
                  (round + number) % 2 == 0 ? (number + round) % rank_count() : rank_me());
  });
}

void main_fibers_meet_wherever_their_activations_are() {
  const auto cells = alloc_on<int>(0, 64);
  for (int round = 1; round <= 20; ++round) {
    (void)activate(
        [](shared::pointer<int> all, int from, int r) {
          all[from] = from + r;
          (void)migrate_to((from + r) % rank_count());
          shared::barrier();
          const int other = (from + 1) % rank_count();
          CHECK_EQUAL(all[other], other + r);
          return 0;
        },
        cells, rank_me(), round);
    shared::barrier();
  }
}

shared::mutex kept_here;
shared::condition_variable kept_changes;
bool has_changed = false;

/// Whether an activation moves to the next rank.
bool activation_moves(bool lock_there) {
  return activate(
      [](bool locks) {
        const rank_t from = rank_me();
        std::unique_lock<shared::mutex> lock(kept_here, std::defer_lock);
        if (locks) lock.lock();
        (void)migrate_to(next_rank());
        return rank_me() != from;
      },
      lock_there);
}

// Where a mutex was locked it is unlocked: so what has locked it stays, until then.
void frames_stay_that_have_locked_a_mutex() {
  if (rank_count() == 1) return;
  for (rank_t r = 0; r < rank_count(); ++r) {
    barrier();
    if (rank_me() != r) continue;
    CHECK(!activation_moves(true));
    CHECK(activation_moves(false));
    const std::lock_guard lock(kept_here);
    CHECK(activation_moves(false));
  }
  barrier();
  if (rank_me() != 0) return;
  // A thread, too, and by its wait for a condition it locks the mutex where it did before.
  thread waits = spawn_on(0, thread_options{}, [] {
    kept_here.lock();
    CHECK_THROWS(thread_error, migrate(self(), next_rank()));
    kept_changes.wait(kept_here, [] { return has_changed; });
    CHECK_THROWS(thread_error, migrate(self(), next_rank()));
    kept_here.unlock();
    migrate(self(), next_rank());
    CHECK(rank_me() != 0);
  });
  yield();
  kept_here.lock();
  has_changed = true;
  kept_changes.notify_all();
  kept_here.unlock();
  waits.join();
}

// Any fiber of the rank may unlock it.
void others_unlock_what_a_fiber_has_locked() {
  shared::mutex& m = kept_here;
  if (rank_me() == 0) {
    for (int round = 0; round < 5; ++round) {
      spawn_on(0, thread_options{}, [] { kept_here.lock(); }).join();
      m.unlock();  // what a fiber has left that has ended
      m.lock();
      thread other = spawn_on(0, thread_options{}, [] { kept_here.unlock(); });
      m.lock();  // once the other has unlocked it
      m.unlock();
      other.join();
      CHECK(m.try_lock());
      m.unlock();
      CHECK_THROWS(sojourn::error, m.unlock());
    }
  }
  barrier();
}

bool busy_threads_end = false;

void loads_that_ranks_tell_each_other_close_no_interval() {
  const auto cell = alloc_on<int>(0, page_ints);
  const balance_policy before = balance_now();
  CHECK_EQUAL(*cell, 0);  // a page of one rank alone would be in no interval
  balance(balance_policy::diffuse);
  shared::barrier();
  if (rank_me() == 0 && rank_count() > 1) {
    const std::uint64_t told_before = counters_now().balance_messages;
    const std::uint64_t intervals_before = shared::counters_now().intervals;
    for (std::size_t round = 0; counters_now().balance_messages < told_before + 30; ++round) {
      ++*cell;
      busy_threads_end = false;
      std::vector<thread> busy;
      for (std::size_t i = 0; i < round % 3; ++i) {
        busy.push_back(spawn(thread_options{.pinned = true}, [] {
          while (!busy_threads_end) yield();
        }));
      }
      for (int i = 0; i < 2000; ++i) yield();
      busy_threads_end = true;
      for (thread& t : busy) t.join();
    }
    CHECK(shared::counters_now().intervals < intervals_before + 3);
  }
  balance(before);
  shared::barrier();
}

void who_takes_no_part_in_barriers_is_refused() {
  if (rank_me() == 0)
    CHECK_THROWS(sojourn::error, rpc(next_rank(), [] { shared::barrier(); }).get());
  shared::run_threads(1, [](int) {
    CHECK_THROWS(sojourn::error, rpc(next_rank(), [] { shared::barrier(); }).get());
  });
}

}  // namespace

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    check::claim("a call sees what its caller stored and the caller what the method stored",
                 a_call_sees_what_its_caller_stored_and_the_caller_what_the_method_stored);
    check::claim("an activation reads its own stores wherever it goes",
                 an_activation_reads_its_own_stores_wherever_it_goes);
    check::claim("a thread brings what it stored and who joins it sees it",
                 a_thread_brings_what_it_stored_and_who_joins_it_sees_it);
    check::claim("a chain of calls orders through all its ranks",
                 a_chain_of_calls_orders_through_all_its_ranks);
    check::claim("collective operations order", collective_operations_order);
    check::claim("the end of a finish sees what its calls stored",
                 the_end_of_a_finish_sees_what_its_calls_stored);
    check::claim("bundled calls order", bundled_calls_order);
    check::claim("arguments and results may lie on pages that are elsewhere",
                 arguments_and_results_may_lie_on_pages_that_are_elsewhere);
    check::claim("a call right behind a barrier finds its rank behind it too",
                 a_call_right_behind_a_barrier_finds_its_rank_behind_it_too);
    check::claim("threads of run_threads meet wherever they have moved",
                 threads_of_start_meet_wherever_they_have_moved);
    check::claim("main fibers meet wherever their activations are",
                 main_fibers_meet_wherever_their_activations_are);
    check::claim("frames stay that have locked a mutex", frames_stay_that_have_locked_a_mutex);
    check::claim("others unlock what a fiber has locked", others_unlock_what_a_fiber_has_locked);
    check::claim("loads that ranks tell each other close no interval",
                 loads_that_ranks_tell_each_other_close_no_interval);
    check::claim("who takes no part in barriers is refused",
                 who_takes_no_part_in_barriers_is_refused);
    return check::verdict();
  });
}
