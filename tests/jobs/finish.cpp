// SPDX-License-Identifier: Apache-2.0
// finish: returns when everything started inside it, wherever it went, is done; not before.
#include <algorithm>
#include <functional>
#include <stdexcept>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
rank_t last() { return rank_count() - 1; }

void pause_us(int us) {
  std::uint64_t until = now_ns() + static_cast<std::uint64_t>(us) * 1000;
  while (now_ns() < until) yield();
}

// What the calls of a claim count, on each rank.
long done;
long everywhere() { return reduce(done, std::plus<>{}); }
/// Between claims: nobody counts any more, and nobody has begun to.
void restart() {
  barrier();
  done = 0;
  barrier();
}

void waits_for_children_and_threads_that_nobody_waits_for() {
  restart();
  // What is started here may run elsewhere, and counts here.
  auto slow = [](rank_t counts_on) {
    pause_us(1500);
    rpc(counts_on, [] { ++done; }).get();
  };
  const rank_t me = rank_me();
  finish([&] { (void)fork(slow, me); });
  CHECK_EQUAL(done, 1);
  finish([&] {
    (void)fork([&] { slow(me); });
    spawn(slow, me).detach();
    auto dropped = fork(slow, me);
  });
  CHECK_EQUAL(done, 4);
  barrier();
  if (me == 0) {
    finish([&] { spawn_on(last(), slow, last()).detach(); });
    CHECK_EQUAL(rpc(last(), [] { return done; }).get(), 5);
  }
}

void an_empty_one() {
  finish([] {});
  int x = 0;
  finish([&] { x = 1; });
  CHECK_EQUAL(x, 1);
}

void waits_for_slow_calls() {
  restart();
  if (rank_me() == 0) {
    finish([] {
      for (rank_t r = 0; r < rank_count(); ++r) {
        rpc_ff(r, [] {
          pause_us(3000);
          ++done;
        });
      }
    });
    for (rank_t r = 0; r < rank_count(); ++r) CHECK_EQUAL(rpc(r, [] { return done; }).get(), 1);
  }
}

void waits_for_calls_whose_futures_nobody_reads() {
  restart();
  if (rank_me() == 0) {
    finish([] {
      auto dropped = rpc(last(), [] {
        pause_us(3000);
        ++done;
      });
    });
    CHECK_EQUAL(rpc(last(), [] { return done; }).get(), 1);
  }
}

void chain(int hops) {
  if (hops > 0) rpc_ff(static_cast<rank_t>((rank_me() + hops) % rank_count()), chain, hops - 1);
  if (hops % 16 == 0) pause_us(20);
  ++done;
}

void transitive_chains() {
  restart();
  if (rank_me() == last()) {
    // Longer than weight can be halved.
    finish([] { rpc_ff(next(), chain, 500); });
    long sum = 0;
    for (rank_t r = 0; r < rank_count(); ++r) sum += rpc(r, [] { return done; }).get();
    CHECK_EQUAL(sum, 501);
  }
}

void tree(int depth) {
  ++done;
  if (depth == 0) return;
  for (int i = 0; i < 3; ++i) {
    rpc_ff(static_cast<rank_t>((rank_me() * 5 + depth + i) % rank_count()), tree, depth - 1);
  }
}

void trees_from_every_rank_at_once() {
  restart();
  finish([] { rpc_ff(next(), tree, 7); });
  barrier();
  CHECK_EQUAL(everywhere(), 3280L * rank_count());
}

void many_calls_from_one_handler() {
  restart();
  if (rank_me() == 0) {
    finish([] {
      rpc_ff(last(), [] {
        for (int i = 0; i < 2000; ++i) rpc_ff(i % rank_count(), [] { ++done; });
      });
    });
    long sum = 0;
    for (rank_t r = 0; r < rank_count(); ++r) sum += rpc(r, [] { return done; }).get();
    CHECK_EQUAL(sum, 2000);
  }
}

void nested_in_one_frame() {
  restart();
  if (rank_me() == 0) {
    auto at = [] { return rpc(last(), [] { return done; }).get(); };
    auto slow = [] {
      pause_us(1500);
      ++done;
    };
    finish([&] {
      rpc_ff(last(), slow);
      finish([&] {
        rpc_ff(last(), slow);
        finish([&] { rpc_ff(last(), slow); });
        CHECK(at() >= 1);
        rpc_ff(last(), slow);
      });
      CHECK(at() >= 3);
      rpc_ff(last(), slow);
    });
    CHECK_EQUAL(at(), 5);
  }
}

int inside_a_handler(int calls) {
  long before = rpc(next(), [] { return done; }).get();
  finish([&] {
    for (int i = 0; i < calls; ++i) {
      rpc_ff(next(), [] {
        pause_us(200);
        ++done;
      });
    }
    rpc(next(), pause_us, 100).get();
  });
  return static_cast<int>(rpc(next(), [] { return done; }).get() - before);
}

int first_thing_in_a_handler() {
  // The handler has not blocked before: it becomes a fiber inside the finish.
  finish([] {
    rpc(next(), pause_us, 300).get();
    rpc_ff(next(), [] {
      pause_us(300);
      ++done;
    });
  });
  return 1;
}

void in_a_handler_that_blocks_in_it() {
  restart();
  if (rank_me() == 0) {
    CHECK_EQUAL(rpc(last(), first_thing_in_a_handler).get(), 1);
    finish([] { rpc_ff(last(), first_thing_in_a_handler); });
    CHECK_EQUAL(rpc((last() + 1) % rank_count(), [] { return done; }).get(), 2);
  }
  restart();
  if (rank_me() == 0) CHECK_EQUAL(rpc(last(), inside_a_handler, 5).get(), 5);
  restart();
  // The handler itself counts in an outer one.
  if (rank_me() == 0) {
    finish([] {
      rpc_ff(last(), [] {
        inside_a_handler(3);
        pause_us(1000);
        ++done;
      });
    });
    long sum = 0;
    for (rank_t r = 0; r < rank_count(); ++r) sum += rpc(r, [] { return done; }).get();
    CHECK_EQUAL(sum, 4);
  }
}

void many_at_a_time_on_one_rank() {
  restart();
  std::vector<future<int>> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(rpc(next(), [] {
      int mine = 0;
      finish([&] {
        for (int k = 0; k < 5; ++k) {
          rpc_ff(
              rank_me(),
              [](std::uint64_t at) {
                pause_us(100);
                ++*reinterpret_cast<int*>(at);
              },
              reinterpret_cast<std::uint64_t>(&mine));
        }
      });
      return mine;
    }));
  }
  for (auto& f : all) CHECK_EQUAL(f.get(), 5);
}

struct worker {
  int value = 7;
  int work() {
    finish([] {
      rpc(last(), pause_us, 1500).get();
      rpc_ff(last(), [] {
        pause_us(500);
        ++done;
      });
    });
    return value;
  }
};

void in_a_method_whose_caller_goes_on() {
  restart();
  if (rank_me() == 0) {
    auto w = make<worker>(0);
    // The finish opens in frames that are cut from this one's when they block.
    auto f = w.async<&worker::work>();
    CHECK_EQUAL(f.get(), 7);
    CHECK_EQUAL(rpc(last(), [] { return done; }).get(), 1);
    // What the caller starts meanwhile is the caller's.
    bool inner_ended = false;
    finish([&] {
      auto g = w.async<&worker::work>();
      rpc_ff(last(), [] {
        pause_us(8000);
        ++done;
      });
      CHECK_EQUAL(g.get(), 7);
      inner_ended = true;
    });
    CHECK(inner_ended);
    CHECK_EQUAL(rpc(last(), [] { return done; }).get(), 3);
    destroy(w);
  }
}

void waits_for_async_methods() {
  restart();
  if (rank_me() == 0) {
    auto here = make<worker>(0);
    auto there = make<worker>(last());
    finish([&] {
      auto a = here.async<&worker::work>();
      auto b = there.async<&worker::work>();
    });
    CHECK_EQUAL(rpc(last(), [] { return done; }).get(), 2);
    destroy(here);
    destroy(there);
  }
}

void waits_for_continuations() {
  restart();
  if (rank_me() == 0) {
    int stage = 0;
    finish([&] {
      auto f = rpc(last(), pause_us, 500)
                   .then([&] {
                     pause_us(500);
                     stage = 1;
                   })
                   .then([&] {
                     pause_us(500);
                     stage = 2;
                   });
    });
    CHECK_EQUAL(stage, 2);
    int at_once = 0;
    finish([&] {
      auto f = rpc(last(), [] { return 1; });
      f.wait();
      auto g = f.then([&](int) {
        pause_us(500);
        at_once = 1;
      });
    });
    CHECK_EQUAL(at_once, 1);
  }
}

int roam(int hops) {
  for (int i = 1; i <= hops; ++i) {
    migrate_to(static_cast<rank_t>((rank_me() + 1) % rank_count()));
    rpc_ff(static_cast<rank_t>((rank_me() + i) % rank_count()), [] {
      pause_us(300);
      ++done;
    });
  }
  return hops;
}

void migrating_activations_inside() {
  restart();
  if (rank_me() == 0) {
    int hops = 0;
    finish([&] { hops = activate(roam, 60); });
    CHECK_EQUAL(hops, 60);
    long sum = 0;
    for (rank_t r = 0; r < rank_count(); ++r) sum += rpc(r, [] { return done; }).get();
    CHECK_EQUAL(sum, 60);
    // Handlers that move away whole count where they end.
    finish([] {
      for (int i = 0; i < 40; ++i) {
        rpc_ff(
            static_cast<rank_t>(i % rank_count()),
            [](int n) {
              roam(n % 7);
              pause_us(50);
            },
            i);
      }
    });
    sum = -60;
    for (rank_t r = 0; r < rank_count(); ++r) sum += rpc(r, [] { return done; }).get();
    int expected = 0;
    for (int i = 0; i < 40; ++i) expected += i % 7;
    CHECK_EQUAL(sum, expected);
  }
}

void one_opened_on_a_rank_migrated_to() {
  restart();
  if (rank_me() == 0) {
    long at_end = activate([] {
      migrate_to(last());
      finish([] {
        rpc_ff(0, [] {
          pause_us(1000);
          ++done;
        });
      });
      migrate_to(0);
      return done;
    });
    CHECK_EQUAL(at_end, 1);
  }
}

/// Away from the rank of the finish, so that each call halves what is left to count by.
rank_t elsewhere() { return rank_me() % (rank_count() - 1) + 1; }
void moves_after_a_chain(int calls, int how) {
  if (calls > 0) return rpc_ff(elsewhere(), moves_after_a_chain, calls - 1, how);
  switch (how) {
    case 0:
      spawn([] {
        for (int i = 0; i < 3; ++i) migrate(self(), elsewhere());
        ++done;
      }).join();
      break;
    case 1:
      done += activate([] { return migrate_to(elsewhere()) ? 1 : 0; });
      break;
    default:
      done += rpc(elsewhere(), [] { return 1; }).get();
  }
}

/// However many calls were made before: 40 use up the weight that is minted at once.
void threads_and_activations_move_behind_any_chain() {
  if (rank_count() < 3) return;
  for (int how = 0; how < 3; ++how) {
    for (int calls = 36; calls <= 44; ++calls) {
      restart();
      if (rank_me() == 0) finish([&] { rpc_ff(1, moves_after_a_chain, calls, how); });
      barrier();
      CHECK_EQUAL(everywhere(), 1);
    }
  }
}

void exceptions_inside() {
  restart();
  int ended = 0;
  if (rank_me() == 0) {
    // The body's own, after everything inside is done.
    CHECK_THROWS(std::logic_error, finish([&] {
                   rpc_ff(last(), [] {
                     pause_us(1000);
                     ++done;
                   });
                   throw std::logic_error("body");
                 }));
    CHECK_EQUAL(rpc(last(), [] { return done; }).get(), 1);
    // One that left a call without a reply, from another rank and two hops away.
    for (rank_t r = 0; r < rank_count(); ++r) {
      CHECK_THROWS(std::range_error, finish([&] {
                     rpc_ff(r, [] { rpc_ff(next(), [] { throw std::range_error("far"); }); });
                     rpc_ff(last(), [] {
                       pause_us(500);
                       ++done;
                     });
                   }));
      ++ended;
      CHECK_EQUAL(rpc(last(), [] { return done; }).get(), 1 + ended);
    }
    // Of several, one; and the next finish knows nothing of them.
    CHECK_THROWS(std::out_of_range, finish([&] {
                   for (int i = 0; i < 30; ++i) {
                     rpc_ff(i % rank_count(), [] { throw std::out_of_range("many"); });
                   }
                 }));
    finish([] { rpc_ff(last(), [] {}); });
    // An inner one's does not reach the outer one's when it is caught between them.
    finish([] {
      CHECK_THROWS(std::length_error,
                   finish([] { rpc_ff(last(), [] { throw std::length_error("inner"); }); }));
    });
    // An exception of a call with a reply goes to its future alone.
    finish([] { auto f = rpc(last(), []() -> int { throw std::length_error("unread"); }); });
  }
}

// How many calls are under way, counted on rank 0, and whether a window was ever full.
struct calls_under_way {
  std::size_t now = 0;
  std::size_t most = 0;
  std::size_t window = 0;
};
calls_under_way counted;

void one_begins() {
  ++counted.now;
  counted.most = std::max(counted.most, counted.now);
}
/// Returns false, and nothing ends, before the window has been full.
bool one_ends() {
  if (counted.most < counted.window) return false;
  --counted.now;
  return true;
}
/// What a call begins goes on elsewhere, and is a part of it.
void goes_on(int hops) {
  if (hops > 0) return rpc_ff(next(), goes_on, hops - 1);
  while (!rpc(0, one_ends).get()) pause_us(20);
}
void is_one_call(int hops) {
  rpc(0, one_begins).get();
  goes_on(hops);
}

/// `begin(i)` begins the i-th of the calls.
template <class Begin>
void expect_windows_of(Begin begin) {
  constexpr std::size_t calls = 40;
  for (const std::size_t in_flight : {1u, 2u, 7u, 1000u}) {
    counted = {0, 0, std::min(in_flight, calls)};
    std::size_t begun = 0;
    finish({.in_flight = in_flight}, [&] {
      for (; begun < calls; ++begun) begin(static_cast<int>(begun));
    });
    CHECK_EQUAL(begun, calls);
    CHECK_EQUAL(counted.now, 0u);
    CHECK_EQUAL(counted.most, counted.window);
  }
}

void windows() {
  restart();
  if (rank_me() == 0) {
    auto to = [](int i) { return static_cast<rank_t>(i % rank_count()); };
    expect_windows_of([&](int i) { rpc_ff(to(i), is_one_call, i % 4); });
    expect_windows_of([&](int i) { auto dropped = rpc(to(i), is_one_call, i % 3); });
    expect_windows_of([&](int i) { spawn_on(to(i), is_one_call, 2).detach(); });
    // Those of a fork are the body's.
    expect_windows_of([&](int i) {
      auto child = fork([&, i] { rpc_ff(to(i), is_one_call, 1); });
      child.get();
    });
    expect_windows_of([&](int i) {
      const aggregated here;
      rpc_ff(to(i), is_one_call, 1);
    });
    CHECK_THROWS(error, finish({.in_flight = 0}, [] { CHECK(false); }));
    finish({.in_flight = 1}, [] {});
  }
}

void windows_of_calls_that_the_body_waits_for() {
  restart();
  // On all ranks at once, with one inside of another.
  finish({.in_flight = 1}, [] {
    for (int i = 0; i < 20; ++i) {
      CHECK_EQUAL(rpc(next(), [] { return rank_me(); }).get(), next());
      finish({.in_flight = 3}, [] {
        for (int k = 0; k < 10; ++k) rpc_ff(last(), tree, 1);
      });
      CHECK_EQUAL(activate(roam, 2), 2);
    }
  });
  barrier();
  CHECK_EQUAL(everywhere(), 20L * (40 + 2) * rank_count());
}

void forks_share_the_window_of_a_body() {
  restart();
  constexpr int forks = 60;
  for (const std::size_t in_flight : {1u, 3u}) {
    finish({.in_flight = in_flight}, [] {
      par_for(0, forks, [](int i) {
        // Those that migrate may find the window full, and stay: then others go on.
        if (i % 3 == 0) {
          CHECK_EQUAL(activate(roam, 1), 1);
        } else {
          rpc_ff(next(), [] { ++done; });
        }
      });
    });
  }
  barrier();
  CHECK_EQUAL(everywhere(), 2L * forks * rank_count());
}

void idle_ranks_take_nothing_of_a_window() {
  restart();
  constexpr int calls = 100;
  if (rank_me() == 0) {
    finish({.in_flight = 1}, [] {
      par_for(anywhere, 0, calls,
              [](int i) { rpc_ff(static_cast<rank_t>(i % rank_count()), [] { ++done; }); });
    });
  }
  barrier();
  CHECK_EQUAL(everywhere(), calls);
}

void slow_call() {
  pause_us(1000);
  ++done;
}

void windows_pass_exceptions_on() {
  restart();
  if (rank_me() != 0) return;
  int begun = 0;
  CHECK_THROWS(std::range_error, finish({.in_flight = 2}, [&] {
                 for (; begun < 10; ++begun) {
                   rpc_ff(last(), [] {
                     ++done;
                     rpc_ff(next(), [] { throw std::range_error("far"); });
                   });
                 }
               }));
  CHECK_EQUAL(begun, 10);
  CHECK_EQUAL(rpc(last(), [] { return done; }).get(), 10);
  CHECK_THROWS(std::logic_error, finish({.in_flight = 2}, [&] {
                 rpc_ff(last(), slow_call);
                 throw std::logic_error("body");
               }));
  CHECK_EQUAL(rpc(last(), [] { return done; }).get(), 11);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("an empty finish returns", an_empty_one);
    check::claim("finish waits for children and threads that nobody waits for",
                 waits_for_children_and_threads_that_nobody_waits_for);
    check::claim("finish waits for slow calls", waits_for_slow_calls);
    check::claim("finish waits for calls whose futures nobody reads",
                 waits_for_calls_whose_futures_nobody_reads);
    check::claim("finish waits for transitive chains", transitive_chains);
    check::claim("finish waits for trees from every rank at once", trees_from_every_rank_at_once);
    check::claim("finish waits for many calls from one handler", many_calls_from_one_handler);
    check::claim("finishes nest", nested_in_one_frame);
    check::claim("a handler may block in a finish", in_a_handler_that_blocks_in_it);
    check::claim("many finishes are open on one rank", many_at_a_time_on_one_rank);
    check::claim("a finish in a method whose caller goes on", in_a_method_whose_caller_goes_on);
    check::claim("finish waits for async methods", waits_for_async_methods);
    check::claim("finish waits for continuations", waits_for_continuations);
    check::claim("finish waits for migrating activations", migrating_activations_inside);
    check::claim("finish opens on a rank migrated to", one_opened_on_a_rank_migrated_to);
    check::claim("threads and activations move behind any chain of calls",
                 threads_and_activations_move_behind_any_chain);
    check::claim("exceptions leave a finish once all is done", exceptions_inside);
    check::claim("a window bounds the calls under way", windows);
    check::claim("windows nest, and bound calls that the body waits for",
                 windows_of_calls_that_the_body_waits_for);
    check::claim("forks share the window of a body", forks_share_the_window_of_a_body);
    check::claim("idle ranks take nothing of a window", idle_ranks_take_nothing_of_a_window);
    check::claim("exceptions leave a finish with a window once all is done",
                 windows_pass_exceptions_on);
    return check::verdict();
  });
}
