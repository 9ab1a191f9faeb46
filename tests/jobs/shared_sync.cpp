// SPDX-License-Identifier: Apache-2.0
// What orders accesses to shared memory besides mutexes and the barrier of all: atomics, flags,
// condition variables, counted and local barriers, reductions, and barriers whose members change.
#include <sojourn/detail/shared_members.hpp>
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

using namespace sojourn;

constexpr int threads_of_rank = 3;

/// The same address on all ranks: allocated on one.
template <class T>
T* alloc_on(rank_t rank, std::size_t count = 1) {
  shared::pointer<T> at;
  if (rank_me() == rank) at = shared::alloc<T>(count);
  return broadcast(at, rank);
}
rank_t last_rank() { return rank_count() - 1; }
std::size_t all_threads() { return static_cast<std::size_t>(threads_of_rank * rank_count()); }
/// Frees what was allocated on a rank, when all have come so far.
void free_on(rank_t rank, void* p) {
  shared::barrier();
  if (rank_me() == rank) shared::free(p);
}

// Global variables: their homes are any ranks.
shared::atomic<std::uint32_t> global_count;
shared::flag global_flag;
shared::fair_mutex fair;
shared::mutex preferring;

// --- Atomics

void each_number_is_added_to_once() {
  constexpr std::size_t each = 40;
  const std::size_t all = each * all_threads();
  auto* count = alloc_on<shared::atomic<std::uint64_t>>(last_rank());
  int* seen = alloc_on<int>(0, 2 * all);
  const std::uint32_t first = global_count.load();
  sojourn::barrier();
  shared::run_threads(threads_of_rank, [&](int) {
    for (std::size_t i = 0; i < each; ++i) {
      ++seen[count->fetch_add(1)];
      ++seen[all + global_count.fetch_add(1) - first];
    }
  });
  CHECK_EQUAL(count->load(), all);
  CHECK_EQUAL(global_count.load() - first, all);
  for (std::size_t i = 0; i < 2 * all; ++i) CHECK_EQUAL(seen[i], 1);
  free_on(last_rank(), count);
  free_on(0, seen);
}

template <class T>
void changes_as_std_would(std::mt19937_64& random) {
  auto* a = alloc_on<shared::atomic<T>>(last_rank());
  // Ranks take turns.
  for (rank_t turn = 0; turn < rank_count(); ++turn) {
    if (turn == rank_me()) {
      T model = a->load();
      for (int i = 0; i < 30; ++i) {
        const T by = static_cast<T>(random());
        const T before = model;
        T was = before;
        switch (random() % 8) {
          case 0:
            a->store(by);
            model = by;
            break;
          case 1:
            was = a->exchange(by);
            model = by;
            break;
          case 2:
            was = a->fetch_add(by);
            model =
                static_cast<T>(static_cast<std::uint64_t>(model) + static_cast<std::uint64_t>(by));
            break;
          case 3:
            was = a->fetch_sub(by);
            model =
                static_cast<T>(static_cast<std::uint64_t>(model) - static_cast<std::uint64_t>(by));
            break;
          case 4:
            was = a->fetch_and(by);
            model = static_cast<T>(model & by);
            break;
          case 5:
            was = a->fetch_or(by);
            model = static_cast<T>(model | by);
            break;
          case 6:
            was = a->fetch_xor(by);
            model = static_cast<T>(model ^ by);
            break;
          default: {
            T expected = random() % 2 == 0 ? model : by;
            const bool is_it = expected == model;
            CHECK(a->compare_exchange(expected, static_cast<T>(by + 1)) == is_it);
            if (is_it) model = static_cast<T>(by + 1);
            CHECK(expected == before);
          }
        }
        CHECK(was == before);
        CHECK(a->load() == model);
      }
    }
    sojourn::barrier();
  }
  free_on(last_rank(), a);
}

enum class colour : std::uint16_t { none, red = 7, blue = 60000 };
struct pair {
  std::int32_t a;
  std::int16_t b, c;
  bool operator==(const pair&) const = default;
};
struct three {
  std::uint8_t bytes[3];
  bool operator==(const three&) const = default;
};

void atomics_hold_all_that_fits() {
  std::mt19937_64 random(static_cast<unsigned>(rank_me()));
  changes_as_std_would<std::int8_t>(random);
  changes_as_std_would<std::uint16_t>(random);
  changes_as_std_would<int>(random);
  changes_as_std_would<unsigned>(random);
  changes_as_std_would<long>(random);
  changes_as_std_would<std::uint64_t>(random);
  struct others {
    shared::atomic<colour> of_enum;
    shared::atomic<bool> of_bool;
    shared::atomic<float> of_float;
    shared::atomic<pair> of_struct;
    shared::atomic<three> of_three;
    shared::atomic<shared::pointer<int>> of_pointer;
  };
  auto* o = alloc_on<others>(0);
  if (rank_me() == last_rank()) {
    CHECK(o->of_enum.exchange(colour::blue) == colour::none);
    CHECK(!o->of_bool.exchange(true));
    CHECK(o->of_float.exchange(-1.5F) == 0);
    CHECK((o->of_struct.exchange({-5, 6, -7}) == pair{}));
    CHECK((o->of_three.exchange({{1, 2, 255}}) == three{}));
    CHECK(o->of_pointer.exchange(shared::pointer<int>(reinterpret_cast<int*>(o))) == nullptr);
  }
  sojourn::barrier();
  CHECK(o->of_enum.load() == colour::blue);
  CHECK(o->of_bool.load());
  CHECK(o->of_float.load() == -1.5F);
  CHECK((o->of_struct.load() == pair{-5, 6, -7}));
  CHECK((o->of_three.load() == three{{1, 2, 255}}));
  CHECK(o->of_pointer.load() == reinterpret_cast<int*>(o));
  free_on(0, o);
}

void one_wins_each_round() {
  constexpr int rounds = 30;
  auto* turn = alloc_on<shared::atomic<int>>(0);
  int* wins = alloc_on<int>(0, rounds);
  shared::run_threads(threads_of_rank, [&](int) {
    for (int r = 0; r < rounds; ++r) {
      int expected = r;
      if (turn->compare_exchange(expected, r + 1))
        ++wins[r];
      else
        CHECK(expected > r);
    }
  });
  for (int r = 0; r < rounds; ++r) CHECK_EQUAL(wins[r], 1);
  free_on(0, turn);
  free_on(0, wins);
}

void an_atomic_orders_what_it_guards() {
  constexpr int rounds = 25;
  struct guarded {
    shared::atomic<bool> taken;
    long sum;
    long far[1000];
  };
  auto* g = alloc_on<guarded>(last_rank());
  shared::run_threads(threads_of_rank, [&](int) {
    for (int r = 0; r < rounds; ++r) {
      while (g->taken.exchange(true)) yield();
      ++g->sum;
      g->far[999] += g->sum;
      g->taken.store(false);
    }
  });
  const long n = rounds * static_cast<long>(all_threads());
  CHECK_EQUAL(g->sum, n);
  CHECK_EQUAL(g->far[999], n * (n + 1) / 2);
  free_on(last_rank(), g);
}

void what_was_freed_is_forgotten() {
  struct all {
    shared::atomic<long> value;
    shared::flag flag;
  };
  for (int i = 0; i < 3; ++i) {
    all* a = alloc_on<all>(last_rank());
    CHECK_EQUAL(a->value.load(), 0);
    CHECK(!a->flag.is_set());
    sojourn::barrier();
    if (rank_me() == 0) {
      a->value.store(5);
      a->flag.set();
      shared::free(a);
    }
    sojourn::barrier();
  }
}

// --- Flags

void a_flag_hands_over_what_was_stored() {
  constexpr int rounds = 20;
  const std::size_t all = all_threads();
  auto* turn_of = alloc_on<shared::flag>(0, all);
  long* value = alloc_on<long>(last_rank(), 600);
  shared::run_threads(threads_of_rank, [&](int number) {
    const auto mine = static_cast<std::size_t>(number);
    if (number == 0) turn_of[0].set();
    for (int r = 0; r < rounds; ++r) {
      turn_of[mine].wait();
      turn_of[mine].clear();
      const long seen = static_cast<long>(all) * r + number;
      CHECK_EQUAL(value[0], seen);
      CHECK_EQUAL(value[599], -seen);
      ++value[0];
      --value[599];
      turn_of[(mine + 1) % all].set();
    }
  });
  free_on(0, turn_of);
  free_on(last_rank(), value);
}

void all_wait_for_a_flag() {
  auto* numbers = alloc_on<int>(0, 3000);
  shared::run_threads(threads_of_rank, [&](int number) {
    if (number == 0) {
      CHECK(!global_flag.is_set());
      for (int i = 0; i < 3000; ++i) numbers[i] = i;
      global_flag.set();
    }
    global_flag.wait();
    CHECK(global_flag.is_set());
    CHECK_EQUAL(numbers[2999], 2999);
    CHECK_EQUAL(numbers[0], 0);
    shared::barrier();
    if (number == 0) global_flag.clear();
  });
  CHECK(!global_flag.is_set());
  free_on(0, numbers);
}

// --- Condition variables

struct queue {
  static constexpr int room = 4;
  shared::mutex guard;
  shared::condition_variable filled, emptied;
  int items[room];
  int begin, count;
  long taken;  ///< How many.
  long sum;
};

void a_queue_loses_nothing() {
  constexpr int each = 24;
  auto* q = alloc_on<queue>(last_rank());
  const long items = each * static_cast<long>(all_threads() / 2);
  const long consumers = static_cast<long>(all_threads() - all_threads() / 2);
  shared::run_threads(threads_of_rank, [&](int number) {
    if (number % 2 != 0) {
      for (int i = 1; i <= each; ++i) {
        q->guard.lock();
        q->emptied.wait(q->guard, [&] { return q->count < queue::room; });
        q->items[(q->begin + q->count++) % queue::room] = i;
        if (i % 2 == 0) q->filled.notify_one();
        q->guard.unlock();
        if (i % 2 != 0) q->filled.notify_one();  // allowed without the mutex, too
      }
      return;
    }
    for (;;) {
      q->guard.lock();
      q->filled.wait(q->guard, [&] { return q->count > 0 || q->taken == items; });
      if (q->taken == items) {
        q->guard.unlock();
        return;
      }
      q->sum += q->items[q->begin];
      q->begin = (q->begin + 1) % queue::room;
      --q->count;
      if (++q->taken == items) q->filled.notify_all();
      q->emptied.notify_one();
      q->guard.unlock();
    }
  });
  CHECK(consumers > 0);
  CHECK_EQUAL(q->taken, items);
  CHECK_EQUAL(q->sum, items / each * (each * (each + 1) / 2));
  free_on(last_rank(), q);
}

void a_condition_variable_refuses_a_mutex_that_is_not_held() {
  auto* q = alloc_on<queue>(0);
  CHECK_THROWS(error, q->filled.wait(q->guard));
  q->filled.notify_one();  // nobody waits
  q->filled.notify_all();
  free_on(0, q);
}

// --- Barriers

void a_counted_barrier_is_for_those_who_come() {
  constexpr int rounds = 12;
  auto* odd_and_even = alloc_on<shared::counted_barrier>(last_rank(), 2);
  int* round_of = alloc_on<int>(0, all_threads());
  shared::run_threads(threads_of_rank, [&](int number) {
    const int group = number % 2;
    const int all = static_cast<int>(all_threads());
    const int members = (all + 1 - group) / 2;
    for (int r = 1; r <= rounds; ++r) {
      round_of[number] = r;
      odd_and_even[group].arrive_and_wait(static_cast<std::uint32_t>(members));
      for (int other = group; other < all; other += 2) CHECK_EQUAL(round_of[other], r);
      odd_and_even[group].arrive_and_wait(static_cast<std::uint32_t>(members));
    }
  });
  free_on(last_rank(), odd_and_even);
  free_on(0, round_of);
}

void a_counted_barrier_refuses_another_number() {
  auto* b = alloc_on<shared::counted_barrier>(0);
  auto* refused = alloc_on<shared::flag>(0);
  CHECK_THROWS(error, b->arrive_and_wait(0));
  const auto all = static_cast<std::uint32_t>(all_threads());
  shared::run_threads(threads_of_rank, [&](int number) {
    if (number != 0) return b->arrive_and_wait(all);
    // Others may not have come yet: then this one waits for nobody.
    for (bool was_refused = false; !was_refused; yield()) {
      try {
        b->arrive_and_wait(1);
      } catch (const error& e) {
        was_refused = std::string(e.what()).find("where others wait for") != std::string::npos;
      }
    }
    b->arrive_and_wait(all);
    refused->set();
  });
  CHECK(refused->is_set());
  b->arrive_and_wait(static_cast<std::uint32_t>(rank_count()));
  free_on(0, b);
  free_on(0, refused);
}

void a_local_barrier_sends_nothing() {
  constexpr int rounds = 50;
  std::vector<int> round_of(threads_of_rank);
  std::uint64_t before = 0, after = 0;
  const auto messages = [] {
    const shared::counters c = shared::counters_now();
    return c.page_messages + c.lock_messages + c.barrier_messages + c.news_messages +
           c.event_messages + c.intervals;
  };
  shared::run_threads(threads_of_rank, [&](int number) {
    const auto mine = static_cast<std::size_t>(number % threads_of_rank);
    shared::barrier();
    if (mine == 0) before = messages();
    for (int r = 1; r <= rounds; ++r) {
      round_of[mine] = r;
      shared::local_barrier();
      for (const int other : round_of) CHECK_EQUAL(other, r);
      shared::local_barrier();
    }
    if (mine == 0) after = messages();
    shared::local_barrier();
  });
  // Others may have arrived at the last barrier already, which rank 0 serves.
  if (rank_me() != 0) CHECK_EQUAL(after, before);
  shared::local_barrier();  // a main fiber is alone
  CHECK_THROWS(error, rpc(rank_me(), [] { spawn([] { shared::local_barrier(); }).join(); }).get());
}

void a_reduction_is_in_order_and_everybody_gets_it() {
  std::string right;
  long sum = 0;
  for (std::size_t t = 0; t < all_threads(); ++t) {
    right += std::to_string(t) + " ";
    sum += static_cast<long>(t * t);
  }
  shared::run_threads(threads_of_rank, [&](int number) {
    for (int r = 0; r < 10; ++r) {
      const long n = number;
      CHECK_EQUAL(shared::reduce_all(n * n, std::plus<>{}), sum);
      CHECK(shared::reduce_all(std::to_string(number) + " ", std::plus<>{}) == right);
    }
  });
  CHECK_EQUAL(shared::reduce_all(1L, std::plus<>{}), rank_count());
}

struct fails {
  int operator()(int, int) const { throw std::runtime_error("as it should"); }
};

void a_reduction_fails_everywhere() {
  shared::run_threads(threads_of_rank, [&](int number) {
    try {
      shared::reduce_all(number, fails{});
      CHECK(!"nothing was thrown");
    } catch (const std::exception&) {
    }
    CHECK_EQUAL(shared::reduce_all(1, std::plus<>{}), static_cast<int>(all_threads()));
  });
}

void threads_that_have_moved_take_part() {
  auto* count = alloc_on<shared::atomic<int>>(0);
  shared::run_threads(
      threads_of_rank,
      [](int number, shared::pointer<shared::atomic<int>> moved) {
        const int all = threads_of_rank * rank_count();
        for (int r = 1; r <= 6; ++r) {
          if ((number + r) % 3 == 0) migrate_to((rank_me() + r) % rank_count());
          CHECK_EQUAL(shared::reduce_all(number + r, std::plus<>{}), all * (all - 1) / 2 + all * r);
          moved->fetch_add(1);
          shared::local_barrier();
          // All threads that began where this one did have added.
          CHECK(moved->load() >= threads_of_rank * r);
          shared::local_barrier();
        }
      },
      shared::pointer<shared::atomic<int>>(count));
  CHECK_EQUAL(count->load(), 6 * static_cast<int>(all_threads()));
  free_on(0, count);
}

/// Also one that prefers fibers of its rank, after some turns.
template <class Mutex>
void a_mutex_comes_to_other_ranks(Mutex& wanted) {
  if (rank_count() == 1) return;
  bool* done = alloc_on<bool>(0);
  auto* going_on = alloc_on<shared::flag>(0);
  shared::run_threads(2, [&](int number) {
    if (rank_me() != 0) going_on->wait();
    // The two threads of rank 0 always want it, so they would hand it to each other for ever.
    int rounds = 0;
    for (bool over = false; !over;) {
      wanted.lock();
      if (number == 0 && ++rounds == 5) going_on->set();
      over = *done;
      if (rank_me() != 0) *done = over = true;
      for (int i = 0; i < 3; ++i) yield();
      wanted.unlock();
    }
  });
  free_on(0, done);
  free_on(0, going_on);
}

// --- Barriers whose members change

/// Main fibers and threads that they create, which end after different numbers of rounds.
void members_of_a_barrier_come_and_go() {
  constexpr int rounds = 12;
  constexpr int most = 24;
  int* round_of = alloc_on<int>(last_rank(), most * 8);  // of the main fibers, then of the others
  auto* slots = alloc_on<shared::atomic<int>>(0);
  auto* ended = alloc_on<shared::atomic<int>>(0);
  auto* lives_until = alloc_on<int>(0, most * 8);
  std::mt19937 random(static_cast<unsigned>(rank_me()) + 7);
  sojourn::barrier();
  // One of a rank's fibers creates others on all ranks, each of which meets all others.
  const auto meet = [=](int slot, int from, int until) {
    for (int r = from; r < until; ++r) {
      round_of[slot] = r;
      shared::barrier();
      for (int s = 0; s < rank_count(); ++s) CHECK_EQUAL(round_of[s], r);
      for (int s = rank_count(); s < slots->load() + rank_count(); ++s)
        if (lives_until[s] > r) CHECK_EQUAL(round_of[s], r);
      shared::barrier();
    }
  };
  struct plan {
    int* round_of;
    shared::atomic<int>*slots, *ended;
    int* lives_until;
  };
  for (int r = 1; r < rounds; ++r) {
    if (random() % 3 != 0 && slots->load() < most) {
      const int until = r + 1 + static_cast<int>(random() % 4);
      const int slot = rank_count() + slots->fetch_add(1);
      const auto where = static_cast<rank_t>(random()) % rank_count();
      shared::detail::barrier_join();
      lives_until[slot] = std::min(until, rounds);
      round_of[slot] = r;
      rpc(
          std::abs(where),
          [](int mine, int from, int to, shared::pointer<int> rounds_of,
             shared::pointer<shared::atomic<int>> over) {
            spawn(
                thread_options{.pinned = true},
                [](int slot_, int from_, int to_, shared::pointer<int> all,
                   shared::pointer<shared::atomic<int>> over_) {
                  shared::detail::barrier_here();
                  for (int round = from_; round < to_; ++round) {
                    all[slot_] = round;
                    shared::barrier();
                    for (int s = 0; s < rank_count(); ++s) CHECK_EQUAL(all[s], round);
                    shared::barrier();
                  }
                  shared::detail::barrier_gone();
                  over_->fetch_add(1);
                },
                mine, from, to, rounds_of, over)
                .detach();
          },
          slot, r, std::min(until, rounds), shared::pointer<int>(round_of),
          shared::pointer<shared::atomic<int>>(ended))
          .get();
    }
    meet(rank_me(), r, r + 1);
  }
  while (ended->load() != slots->load()) yield();
  CHECK(slots->load() > 0);
  shared::barrier();
  CHECK_THROWS(error, rpc(rank_me(), [] { shared::detail::barrier_here(); }).get());
  free_on(last_rank(), round_of);
  free_on(0, slots);
  free_on(0, ended);
  free_on(0, lives_until);
}

void a_broken_barrier_tells_that_not_all_have_met() {
  namespace members = shared::detail;
  int* stored = alloc_on<int>(last_rank(), 8);
  for (int round = 1; round <= 5; ++round) {
    if (rank_me() == 0) {
      for (rank_t r = 1; r < rank_count(); ++r)
        while (!rpc(r, members::barrier_has_waiting).get()) yield();
      members::barrier_break();
    } else {
      CHECK(!members::barrier_of_members());
    }
    stored[rank_me()] = round;
    CHECK(members::barrier_of_members());
    for (int r = 0; r < rank_count(); ++r) CHECK_EQUAL(stored[r], round);
    shared::barrier();
  }
  auto* place = alloc_on<shared::counted_barrier>(0);
  const auto all = static_cast<std::uint32_t>(rank_count());
  for (int round = 0; round < 3; ++round)
    CHECK_EQUAL(members::meet(place, all, std::uint64_t{1} << rank_me()),
                (std::uint64_t{1} << all) - 1);
  CHECK_EQUAL(members::meet(place, all, 0), std::uint64_t{0});
  sojourn::barrier();
  free_on(last_rank(), stored);
  free_on(0, place);
}

// --- What it costs

void operations_send_what_is_documented() {
  if (rank_count() == 1) return;
  struct objects {
    shared::atomic<int> atomic;
    shared::flag flag;
    shared::counted_barrier barrier;
    shared::condition_variable condition;
    shared::mutex guard;
    bool is_prepared;
  };
  auto* o = alloc_on<objects>(last_rank());
  // So that what is asked of a rank that is not the home is counted.
  const auto messages = [] {
    sojourn::barrier();
    return reduce(shared::counters_now().event_messages, std::plus<>{});
  };
  const auto cost = [&](rank_t rank, auto operation) {
    const std::uint64_t before = messages();
    if (rank_me() == rank) operation();
    return messages() - before;
  };
  CHECK_EQUAL(cost(0, [&] { o->atomic.fetch_add(1); }), 2);
  CHECK_EQUAL(cost(0, [&] { o->atomic.load(); }), 2);
  CHECK_EQUAL(cost(0, [&] { CHECK(!o->flag.is_set()); }), 2);
  CHECK_EQUAL(cost(0, [&] { o->barrier.arrive_and_wait(1); }), 2);
  CHECK_EQUAL(cost(0, [&] { o->condition.notify_all(); }), 2);
  CHECK_EQUAL(cost(0, [&] { o->flag.set(); }), 2);
  CHECK_EQUAL(cost(0, [&] { o->flag.wait(); }), 2);
  CHECK_EQUAL(cost(0, [&] { o->flag.clear(); }), 2);
  // Questions of one rank come in the order in which they were asked.
  const auto with_another = [](auto first, auto second) {
    const std::uint64_t before = shared::counters_now().event_waits;
    thread other = spawn(
        thread_options{.pinned = true},
        [](std::uintptr_t f) { (*reinterpret_cast<decltype(&first)>(f))(); },
        reinterpret_cast<std::uintptr_t>(&first));
    while (shared::counters_now().event_waits == before) yield();
    second();
    other.join();
  };
  CHECK_EQUAL(cost(0, [&] { with_another([&] { o->flag.wait(); }, [&] { o->flag.set(); }); }), 5);
  CHECK_EQUAL(cost(0,
                   [&] {
                     with_another([&] { o->barrier.arrive_and_wait(2); },
                                  [&] { o->barrier.arrive_and_wait(2); });
                   }),
              5);
  const auto prepares = [&] {
    o->guard.lock();
    o->is_prepared = true;
    o->condition.notify_one();
    o->guard.unlock();
  };
  const auto awaits = [&] {
    o->guard.lock();
    o->condition.wait(o->guard, [&] { return o->is_prepared; });
    o->guard.unlock();
  };
  CHECK_EQUAL(cost(0, [&] { with_another(awaits, prepares); }), 5);
  CHECK_EQUAL(cost(last_rank(),
                   [&] {
                     o->atomic.fetch_add(1);
                     o->flag.clear();
                     with_another([&] { o->flag.wait(); }, [&] { o->flag.set(); });
                     o->barrier.arrive_and_wait(1);
                     o->condition.notify_all();
                   }),
              0);
  free_on(last_rank(), o);
}

// --- Memory

void containers_of_pmr_lie_in_shared_memory() {
  using numbers = std::pmr::vector<int>;
  struct holder {
    alignas(numbers) unsigned char place[sizeof(numbers)];
  };
  for (const shared::protocol how : {shared::protocol::usual, shared::protocol::lmw,
                                     shared::protocol::lsw, shared::protocol::seq}) {
    auto* h = alloc_on<holder>(0);
    auto* v = reinterpret_cast<numbers*>(h->place);
    if (rank_me() == 0) {
      ::new (static_cast<void*>(v)) numbers(shared::resource(how));
      for (int i = 0; i < 5000; ++i) v->push_back(i);
    }
    shared::barrier();
    const int* data = v->data();
    CHECK_EQUAL(v->size(), 5000);
    CHECK_EQUAL(data[4999], 4999);
    CHECK(*shared::resource(how) == *shared::resource());
    shared::barrier();
    if (rank_me() == 0) v->~numbers();
    free_on(0, h);
  }
}

// --- All of it together

/// Each thread does a random list of things to shared sums, each guarded in another way; what the
/// sums must be, all threads work out at the end.
void random_operations_add_up(std::uint64_t seed) {
  constexpr int steps = 60;
  constexpr std::size_t kinds = 5, sums = 3;
  struct sum_of_kind {
    shared::mutex guard;
    shared::fair_mutex fair_guard;
    shared::condition_variable freed;
    shared::atomic<bool> spin;
    shared::atomic<long> value;
    shared::flag set_when_free;
    long sums[kinds];
    bool taken;
    long other[700];  // so that others lie on other pages
  };
  auto* all = alloc_on<sum_of_kind>(static_cast<rank_t>(seed) % rank_count(), sums);
  long* expected = alloc_on<long>(0, sums * kinds * all_threads());
  shared::run_threads(threads_of_rank, [&](int number) {
    std::mt19937_64 random(seed * 1000 + static_cast<unsigned>(number));
    long* mine = expected + sums * kinds * static_cast<std::size_t>(number);
    for (int i = 0; i < steps; ++i) {
      const std::size_t s = random() % sums;
      const std::size_t kind = random() % kinds;
      const auto by = static_cast<long>(random() % 100);
      sum_of_kind& at = all[s];
      mine[s * kinds + kind] += by;
      switch (kind) {
        case 0:
          at.guard.lock();
          at.sums[0] += by;
          at.guard.unlock();
          break;
        case 1:
          at.fair_guard.lock();
          at.sums[1] += by;
          at.fair_guard.unlock();
          break;
        case 2:
          at.value.fetch_add(by);
          break;
        case 3:
          for (bool free = false; !at.spin.compare_exchange(free, true); free = false) yield();
          at.sums[3] += by;
          at.spin.store(false);
          break;
        default:
          // A lock made of a condition.
          at.guard.lock();
          at.freed.wait(at.guard, [&] { return !at.taken; });
          at.taken = true;
          at.guard.unlock();
          at.sums[4] += by;
          at.guard.lock();
          at.taken = false;
          if (random() % 2 == 0) {
            at.freed.notify_one();
            at.guard.unlock();
          } else {
            at.guard.unlock();
            at.freed.notify_all();
          }
      }
      if (random() % 16 == 0) yield();
    }
  });
  for (std::size_t s = 0; s < sums; ++s)
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      long right = 0;
      for (std::size_t t = 0; t < all_threads(); ++t)
        right += expected[sums * kinds * t + s * kinds + kind];
      CHECK_EQUAL(kind == 2 ? all[s].value.load() : all[s].sums[kind], right);
    }
  shared::barrier();
  free_on(static_cast<rank_t>(seed) % rank_count(), all);
  free_on(0, expected);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [&] {
    using check::claim;
    claim("each number is added to once", each_number_is_added_to_once);
    claim("atomics hold all that fits", atomics_hold_all_that_fits);
    claim("one wins each round", one_wins_each_round);
    claim("an atomic orders what it guards", an_atomic_orders_what_it_guards);
    claim("what was freed is forgotten", what_was_freed_is_forgotten);
    claim("a flag hands over what was stored", a_flag_hands_over_what_was_stored);
    claim("all wait for a flag", all_wait_for_a_flag);
    claim("a queue loses nothing", a_queue_loses_nothing);
    claim("a condition variable refuses a mutex that is not held",
          a_condition_variable_refuses_a_mutex_that_is_not_held);
    claim("a counted barrier is for those who come", a_counted_barrier_is_for_those_who_come);
    claim("a counted barrier refuses another number", a_counted_barrier_refuses_another_number);
    claim("a local barrier sends nothing", a_local_barrier_sends_nothing);
    claim("a reduction is in order, and everybody gets it",
          a_reduction_is_in_order_and_everybody_gets_it);
    claim("a reduction fails everywhere", a_reduction_fails_everywhere);
    claim("threads that have moved take part", threads_that_have_moved_take_part);
    claim("a fair mutex comes to other ranks", [] { a_mutex_comes_to_other_ranks(fair); });
    claim("a mutex comes to other ranks", [] { a_mutex_comes_to_other_ranks(preferring); });
    claim("members of a barrier come and go", members_of_a_barrier_come_and_go);
    claim("a broken barrier tells that not all have met",
          a_broken_barrier_tells_that_not_all_have_met);
    claim("operations send what is documented", operations_send_what_is_documented);
    claim("containers of pmr lie in shared memory", containers_of_pmr_lie_in_shared_memory);
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const std::string name = "random operations add up, seed " + std::to_string(seed);
      claim(name.c_str(), [seed] { random_operations_add_up(seed); });
    }
    return check::verdict();
  });
}
