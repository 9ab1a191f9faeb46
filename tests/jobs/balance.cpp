// SPDX-License-Identifier: Apache-2.0
// Load balance: under every policy each thread runs once, wherever that is, and what may not move
// does not. How much moves is chance; that something does is claimed only where it must.
#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <random>
#include <string_view>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

/// What threads leave behind; on one rank, reached by rpc.
struct board {
  std::vector<long> notes;
  std::vector<long> ranks;
  void note(long value, long rank) {
    notes.push_back(value);
    ranks.push_back(rank);
  }
  long count() const { return static_cast<long>(notes.size()); }
  long sum() const {
    long s = 0;
    for (long n : notes) s += n;
    return s;
  }
  /// Notes that were not taken on the rank.
  long elsewhere(long rank) const {
    long n = 0;
    for (long r : ranks) n += r != rank;
    return n;
  }
};

constexpr balance_policy policies[] = {balance_policy::none, balance_policy::steal,
                                       balance_policy::diffuse};

counters sum_of(const counters& mine) { return reduce(mine, std::plus<>{}); }

/// Computes for a while, without giving up its turn.
void compute(int microseconds) {
  std::uint64_t until = now_ns() + static_cast<std::uint64_t>(microseconds) * 1000;
  while (now_ns() < until) {
  }
}

// --- a random tree of threads against a model ----------------------------------------------------

/// Of thread `seed`: how many threads it starts.
int children_of(std::uint32_t seed, int depth) {
  if (depth == 0) return 0;
  std::minstd_rand random(seed * 7919 + 13);
  random.discard(3);
  return static_cast<int>(random() % 4);
}
std::uint32_t child_of(std::uint32_t seed, int i) {
  return seed * 2654435761u + static_cast<std::uint32_t>(i) * 40503u + 1;
}

struct tally {
  long count = 0;
  long sum = 0;
};
tally model(std::uint32_t seed, int depth) {
  tally t{1, static_cast<long>(seed % 1000)};
  for (int i = 0, n = children_of(seed, depth); i < n; ++i) {
    tally c = model(child_of(seed, i), depth - 1);
    t.count += c.count;
    t.sum += c.sum;
  }
  return t;
}

tally here;  // what threads have done on this rank

/// Its frames wait, compute and give up their turn in between, so that it may be anywhere.
void branch(std::uint32_t seed, int depth, bool shares) {
  volatile long guard = seed;
  std::minstd_rand random(seed + 1);
  const thread_options options{.shared_stack = shares};
  int children = children_of(seed, depth);
  if (random() % 2 == 0) {
    for (int i = 0; i < children; ++i) {
      spawn(options, branch, child_of(seed, i), depth - 1, shares).detach();
    }
  } else {
    thread started[4];
    for (int i = 0; i < children; ++i) {
      started[i] = spawn(options, branch, child_of(seed, i), depth - 1, shares);
    }
    for (int i = 0; i < children; ++i) started[i].join();
  }
  switch (random() % 4) {
    case 0:
      yield();
      break;
    case 1:
      compute(static_cast<int>(random() % 50));
      break;
    case 2:
      CHECK_EQUAL(rpc(
                      static_cast<rank_t>(seed % static_cast<unsigned>(rank_count())),
                      [](std::uint32_t x) { return x + 1; }, seed)
                      .get(),
                  seed + 1);
      break;
    default:
      break;
  }
  CHECK_EQUAL(guard, static_cast<long>(seed));
  ++here.count;
  here.sum += seed % 1000;
}

void every_thread_runs_once() {
  for (balance_policy policy : policies) {
    balance(policy);
    CHECK(balance_now() == policy);
    for (std::uint32_t seed : {1u, 2u, 3u, 4u}) {
      for (bool shares : {false, true}) {
        here = {};
        barrier();
        counters before = counters_now();
        if (rank_me() == 0) {
          finish([&] { spawn(thread_options{}, branch, seed, 12, shares).detach(); });
        }
        barrier();
        counters spent = sum_of(counters_now() - before);
        tally all =
            reduce(here, [](tally a, tally b) { return tally{a.count + b.count, a.sum + b.sum}; });
        tally wanted = model(seed, 12);
        CHECK_EQUAL(all.count, wanted.count);
        CHECK_EQUAL(all.sum, wanted.sum);
        if (policy == balance_policy::none) {
          CHECK_EQUAL(spent.threads_handed_over, 0u);
          CHECK_EQUAL(spent.steal_requests, 0u);
        }
        barrier();
      }
    }
  }
  balance(balance_policy::none);
}

// --- who goes where ------------------------------------------------------------------------------

void note_where(global_ptr<board> to, long value) {
  compute(200);
  to.call<&board::note>(value, rank_me());
}

/// A rank that computes has much to start; others have nothing to do.
void idle_ranks_get_threads() {
  for (balance_policy policy : {balance_policy::steal, balance_policy::diffuse}) {
    balance(policy);
    barrier();
    counters before = counters_now();
    constexpr int many = 64;
    if (rank_me() == 0) {
      auto b = make<board>(0);
      std::vector<thread> all;
      for (int i = 0; i < many; ++i) all.push_back(spawn(note_where, b, 1L));
      for (thread t : all) t.join();
      CHECK_EQUAL(b.call<&board::sum>(), many);
      if (rank_count() > 1) CHECK(b.call<&board::elsewhere>(0) > 0);
      destroy(b);
    }
    barrier();
    counters spent = sum_of(counters_now() - before);
    if (rank_count() > 1) CHECK(spent.threads_handed_over > 0);
    if (rank_count() == 1) CHECK_EQUAL(spent.balance_messages, 0u);
    CHECK(counters_now().steals_empty <= counters_now().steal_requests);
    barrier();
  }
  balance(balance_policy::none);
}

/// Each thread has started, with all its frames, when it is handed over.
void those_that_have_started_go_too() {
  if (rank_count() == 1) return;
  balance(balance_policy::none);
  static bool open;
  open = false;
  barrier();
  auto b = rank_me() == 0 ? make<board>(0) : global_ptr<board>{};
  b = broadcast(b);
  std::vector<thread> all;
  if (rank_me() == 0) {
    for (long i = 0; i < 16; ++i) {
      all.push_back(spawn(
          [](global_ptr<board> to, long n) {
            volatile long mine = n;
            // Until it is on a rank where it may go on: others are never told.
            while (rank_me() == 0 && !open) yield();
            to.call<&board::note>(mine, rank_me());
          },
          b, i));
    }
    for (int i = 0; i < 20; ++i) yield();
  }
  balance(balance_policy::steal);
  if (rank_me() == 0) {
    while (b.call<&board::count>() < 8) yield();
    open = true;
    for (thread t : all) t.join();
    CHECK_EQUAL(b.call<&board::sum>(), 16 * 15 / 2);
    CHECK(b.call<&board::elsewhere>(0) >= 8);
    destroy(b);
  }
  barrier();
  balance(balance_policy::none);
}

long ran_in_outer = 0;  // threads of a finish, on this rank
long ran_in_inner = 0;

/// Starts threads that add to `ran`, with calls that each bring weight for all these.
template <long& ran>
void start_on_the_next(int calls) {
  for (int i = 0; i < calls; ++i) {
    rpc_ff(1, [] {
      for (int n = 0; n < 30; ++n) {
        spawn([] {
          compute(300);
          ++ran;
        }).detach();
      }
    });
  }
}

/// Each thread of a scope that leaves takes half of the scope's weight along, until nothing is left
/// of it; the threads behind them, of another scope, go all the same.
void a_scope_without_weight_holds_up_no_other() {
  if (rank_count() != 2) return;
  balance(balance_policy::steal);
  barrier();
  // On a busy machine rank 1 may have run all of them before rank 0 gets a core.
  int tries = 0;
  while (rank_me() == 0 && ran_in_inner == 0 && tries < 20) {
    ++tries;
    finish([] {
      start_on_the_next<ran_in_outer>(2);
      finish([] {
        start_on_the_next<ran_in_inner>(4);
        compute(3000);  // until all are there
      });
    });
  }
  if (rank_me() == 0) CHECK(ran_in_inner > 0);
  barrier();
  tries = broadcast(tries);
  CHECK_EQUAL(reduce(ran_in_outer, std::plus<>{}), 60 * tries);
  CHECK_EQUAL(reduce(ran_in_inner, std::plus<>{}), 120 * tries);
  balance(balance_policy::none);
}

void pinned_ones_and_those_at_home_stay() {
  for (balance_policy policy : policies) {
    balance(policy);
    barrier();
    auto b = make<board>(rank_me());
    auto object = make<board>((rank_me() + 1) % rank_count());
    std::vector<thread> all;
    for (int i = 0; i < 24; ++i) {
      // With the object's rank as the number that must be where it ran.
      const thread_options options =
          i % 3 == 0 ? thread_options{.pinned = true} : thread_options{.affinity = object};
      auto body = [](global_ptr<board> to, rank_t wanted) {
        for (int n = 0; n < 5; ++n) {
          compute(50);
          if (rank_me() != wanted) break;
          yield();
        }
        to.call<&board::note>(rank_me() != wanted, rank_me());
      };
      rank_t wanted = i % 3 == 0 ? rank_me() : object.where();
      all.push_back(spawn(options, body, b, wanted));
    }
    for (int i = 0; i < 12; ++i) {
      all.push_back(spawn(
          [](global_ptr<board> to) {
            set_affinity(to);
            rank_t there = rank_me();
            for (int n = 0; n < 5; ++n) {
              compute(50);
              yield();
            }
            // It is where it was, or at home.
            to.call<&board::note>(rank_me() != there && rank_me() != to.where(), rank_me());
          },
          b));
    }
    for (thread t : all) t.join();
    CHECK_EQUAL(b.call<&board::count>(), 36);
    CHECK_EQUAL(b.call<&board::sum>(), 0);
    barrier();
    destroy(b);
    destroy(object);
    barrier();
  }
  balance(balance_policy::none);
}

/// A thread that was started elsewhere than where its object is comes home when there is time.
void one_comes_home() {
  if (rank_count() == 1) return;
  balance(balance_policy::steal);
  barrier();
  if (rank_me() == 0) {
    const std::uint64_t handed = counters_now().threads_handed_over;
    auto object = make<board>(rank_count() - 1);
    thread t = spawn_on(
        0, thread_options{.affinity = object},
        [](global_ptr<board> home) {
          while (rank_me() != home.where()) yield();
          home.call<&board::note>(1L, rank_me());
        },
        object);
    // Has to do as well: one of two may go.
    while (!t.finished()) yield();
    t.join();
    CHECK_EQUAL(object.call<&board::count>(), 1);
    CHECK_EQUAL(object.call<&board::elsewhere>(object.where()), 0);
    // Only load balance brings it there, and from here straight.
    CHECK_EQUAL(counters_now().threads_handed_over - handed, 1u);
    destroy(object);
  }
  barrier();
  balance(balance_policy::none);
}

void what_may_not_move_is_passed_over() {
  balance(balance_policy::steal);
  barrier();
  auto b = make<board>(rank_me());
  std::vector<thread> all;
  static sojourn::mutex guard;
  for (int i = 0; i < 12; ++i) {
    all.push_back(spawn(
        [](global_ptr<board> to, int kind) {
          // Wherever it was started: from here on it holds what does not travel.
          rank_t there = rank_me();
          long moved = 0;
          auto turns = [&] {
            for (int n = 0; n < 10; ++n) {
              compute(20);
              yield();
              moved += rank_me() != there;
            }
          };
          if (kind == 0) {
            stay here_it_is;
            turns();
          } else if (kind == 1) {
            std::lock_guard lock(guard);
            turns();
          } else {
            try {
              throw 1;
            } catch (int) {
              turns();
            }
          }
          to.call<&board::note>(moved, rank_me());
        },
        b, i % 3));
  }
  for (thread t : all) t.join();
  CHECK_EQUAL(b.call<&board::count>(), 12);
  CHECK_EQUAL(b.call<&board::sum>(), 0);
  barrier();
  destroy(b);
  balance(balance_policy::none);
}

/// A thread that waited in an object of its rank looks at it again before it goes.
void those_woken_by_their_rank_go_on_there_first() {
  balance(balance_policy::steal);
  barrier();
  static sojourn::mutex guard;
  static condition_variable changed;
  static int turn;
  turn = 0;
  auto b = make<board>(rank_me());
  std::vector<thread> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(spawn_on(
        rank_me(), thread_options{},
        [](global_ptr<board> to) {
          bool mine = rank_me() == to.where();
          if (mine) {
            std::unique_lock lock(guard);
            changed.wait(lock, [] { return turn != 0; });
          }
          yield();
          to.call<&board::note>(1L, rank_me());
        },
        b));
  }
  for (int i = 0; i < 50; ++i) yield();
  {
    std::lock_guard lock(guard);
    turn = 1;
  }
  changed.notify_all();
  for (thread t : all) t.join();
  CHECK_EQUAL(b.call<&board::sum>(), 8);
  barrier();
  destroy(b);
  balance(balance_policy::none);
}

/// Two threads that give up their turn all the time, on ranks that are idle by turns: handed over,
/// they stay for longer and longer.
void going_to_and_fro_is_damped() {
  if (rank_count() == 1) return;
  for (balance_policy policy : {balance_policy::steal, balance_policy::diffuse}) {
    balance(policy);
    barrier();
    counters before = counters_now();
    std::uint64_t began = now_ns();
    auto b = make<board>(rank_me());
    if (rank_me() == 0) {
      std::vector<thread> all;
      for (int i = 0; i < 3; ++i) {
        all.push_back(spawn(
            [](global_ptr<board> to) {
              for (int n = 0; n < 3000; ++n) {
                // Waits for an answer, so that its rank may look idle.
                rpc((rank_me() + 1) % rank_count(), [] {}).get();
                yield();
              }
              to.call<&board::note>(1L, rank_me());
            },
            b));
      }
      for (thread t : all) t.join();
    }
    barrier();
    counters spent = sum_of(counters_now() - before);
    std::uint64_t took = now_ns() - began;
    // Each stays 50 us after the first handover and twice as long after each further one; from the
    // fifth on no rank gets it sooner. So so many can have been, whatever the machine.
    std::uint64_t most_each = 4;
    for (std::uint64_t stay = 50'000 << 4, sum = 0; sum < took;
         stay = std::min(2 * stay, std::uint64_t{50'000} << 10)) {
      sum += stay;
      ++most_each;
    }
    CHECK(spent.threads_handed_over <= 3 * (most_each + 4));
    barrier();
    destroy(b);
  }
  balance(balance_policy::none);
}

/// Asked by hand meanwhile.
void moved_by_others_meanwhile() {
  for (balance_policy policy : {balance_policy::steal, balance_policy::diffuse}) {
    balance(policy);
    barrier();
    auto b = make<board>(rank_me());
    std::vector<thread> all;
    for (int i = 0; i < 24; ++i) {
      all.push_back(spawn(
          [](global_ptr<board> to, unsigned seed) {
            std::minstd_rand random(seed);
            for (int n = 0; n < 60; ++n) {
              switch (random() % 3) {
                case 0:
                  yield();
                  break;
                case 1:
                  migrate(self(),
                          static_cast<rank_t>(random() % static_cast<unsigned>(rank_count())));
                  break;
                default:
                  rpc(static_cast<rank_t>(random() % static_cast<unsigned>(rank_count())), [] {
                  }).get();
              }
            }
            to.call<&board::note>(1L, rank_me());
          },
          b, static_cast<unsigned>(i + 1)));
    }
    std::minstd_rand random(5);
    while (b.call<&board::count>() < 24) {
      yield();
      thread t = all[random() % all.size()];
      try {
        migrate(t, static_cast<rank_t>(random() % static_cast<unsigned>(rank_count())));
      } catch (const thread_error& e) {
        CHECK(e.why() != thread_refusal::unknown);
      }
    }
    for (thread t : all) t.join();
    CHECK_EQUAL(b.call<&board::sum>(), 24);
    barrier();
    destroy(b);
  }
  balance(balance_policy::none);
}

/// What a thread does next after it has moved itself, it does there.
void one_that_moves_itself_arrives() {
  for (balance_policy policy : {balance_policy::steal, balance_policy::diffuse}) {
    balance(policy);
    barrier();
    auto b = make<board>(rank_me());
    std::vector<thread> all;
    for (int i = 0; i < 8; ++i) {
      all.push_back(spawn(
          [](global_ptr<board> to, unsigned seed) {
            std::minstd_rand random(seed);
            long wrong = 0;
            for (int n = 0; n < 200; ++n) {
              auto there = static_cast<rank_t>(random() % static_cast<unsigned>(rank_count()));
              migrate(self(), there);
              wrong += rank_me() != there;
              if (n % 3 == 0) yield();
            }
            to.call<&board::note>(wrong, rank_me());
          },
          b, static_cast<unsigned>(i + 1)));
    }
    for (thread t : all) t.join();
    CHECK_EQUAL(b.call<&board::sum>(), 0);
    barrier();
    destroy(b);
  }
  balance(balance_policy::none);
}

/// Threads that wait for what only an older one gives are not started for ever before it.
void the_oldest_gets_its_turn() {
  balance(balance_policy::steal);
  barrier();
  static bool told;
  static int links;
  static thread_options stays;
  constexpr int links_max = 10'000;
  told = false;
  links = 0;
  if (rank_me() == 0) {
    const auto on_rank_0 = make<int>(0);
    stays.affinity = on_rank_0;  // and each waits for its turn, as one that is pinned would not
    struct chain {
      static void link() {
        if (told || ++links >= links_max) return;
        spawn_on(0, stays, link).detach();
      }
    };
    thread first = spawn_on(0, stays, [] { rpc(0, [] { told = true; }).get(); });
    finish([] {
      spawn_on(0, stays, chain::link).detach();
      spawn_on(0, stays, chain::link).detach();
    });
    first.join();
    CHECK(told);
    CHECK(links < links_max);  // the newest alone would have gone on so long
    destroy(on_rank_0);
  }
  barrier();
  balance(balance_policy::none);
}

/// A fiber whose calls are all answered at once does not keep threads from starting.
void calls_in_a_row_let_threads_start() {
  if (rank_count() == 1) return;
  for (balance_policy policy : policies) {
    balance(policy);
    barrier();
    static bool told;
    told = false;
    if (rank_me() == 0) {
      thread t = spawn_on(0, thread_options{.affinity = affinity{}},
                          [] { rpc(0, [] { told = true; }).get(); });
      while (!told) rpc(1, [] {}).get();
      t.join();
    }
    barrier();
  }
  balance(balance_policy::none);
}

/// After the first questions nobody asks again while nobody has anything.
void a_job_without_work_is_silent() {
  balance(balance_policy::steal);
  barrier();
  sleep_for(std::chrono::milliseconds(20));
  barrier();
  sleep_for(std::chrono::milliseconds(20));
  counters before = counters_now();
  sleep_for(std::chrono::milliseconds(200));
  counters spent = counters_now() - before;
  CHECK_EQUAL(spent.steal_requests, 0u);
  CHECK_EQUAL(spent.balance_messages, 0u);
  CHECK(spent.sleeps < 20);
  barrier();
  balance(balance_policy::none);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("every thread runs once", every_thread_runs_once);
    check::claim("idle ranks get threads", idle_ranks_get_threads);
    check::claim("those that have started go too", those_that_have_started_go_too);
    check::claim("a scope without weight holds up no other",
                 a_scope_without_weight_holds_up_no_other);
    check::claim("pinned ones and those at home stay", pinned_ones_and_those_at_home_stay);
    check::claim("one comes home", one_comes_home);
    check::claim("what may not move is passed over", what_may_not_move_is_passed_over);
    check::claim("those woken by their rank go on there first",
                 those_woken_by_their_rank_go_on_there_first);
    check::claim("going to and fro is damped", going_to_and_fro_is_damped);
    check::claim("moved by others meanwhile", moved_by_others_meanwhile);
    check::claim("one that moves itself arrives", one_that_moves_itself_arrives);
    check::claim("the oldest gets its turn", the_oldest_gets_its_turn);
    check::claim("calls in a row let threads start", calls_in_a_row_let_threads_start);
    check::claim("a job without work is silent", a_job_without_work_is_silent);
    return check::verdict();
  });
}
