// SPDX-License-Identifier: Apache-2.0
// Aggregation: bundled calls mean what calls mean, in the order in which they were made, and cost
// a part of a message.
#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
bool alone() { return rank_count() == 1; }

long done;
/// Once all ranks' calls are done.
long everywhere() {
  barrier();
  return reduce(done, std::plus<>{});
}
void restart() {
  barrier();
  done = 0;
  barrier();
}
void wait_until(bool (*holds)()) {
  while (!holds()) yield();
}

void many_calls_take_few_messages() {
  restart();
  constexpr long calls = 10'000;
  const counters before = counters_now();
  finish([] {
    aggregated here;
    for (long i = 0; i < calls; ++i) rpc_ff(next(), [](long n) { done += n; }, i);
  });
  const counters spent = counters_now() - before;
  CHECK_EQUAL(everywhere(), rank_count() * (calls * (calls - 1) / 2));
  if (!alone()) {
    CHECK_EQUAL(spent.calls_bundled, calls);
    // A call takes 8 bytes of a bundle, as the header of all does; what tells the finish takes 16.
    const std::size_t a_bundle = (aggregation{}.bytes - 24) / 8;
    CHECK(spent.bundles_sent >= calls / a_bundle);
    CHECK(spent.bundles_sent <= calls / a_bundle + 2);
    CHECK_EQUAL(spent.requests_sent, spent.bundles_sent);
  }
  barrier();
}

// What came from each rank.
std::vector<std::vector<int>> seen;
void note(rank_t from, int value) { seen[static_cast<std::size_t>(from)].push_back(value); }

struct box {
  void put_in(rank_t from, int value) { note(from, value); }
  void append(rank_t from, const std::vector<int>& values) {
    for (int v : values) note(from, v);
  }
};

/// Numbers in order, by whatever way a call can go.
void any_mixture_of_calls_keeps_its_order() {
  if (alone()) return;  // methods of local objects are called at once
  seen.assign(static_cast<std::size_t>(rank_count()), {});
  barrier();
  std::mt19937 random(static_cast<unsigned>(rank_me()) + 1);
  auto where = make<box>(next());
  constexpr int numbers = 3000;
  finish([&] {
    aggregated here({.bytes = 1024});
    const rank_t me = rank_me();
    for (int i = 0; i < numbers;) {
      switch (random() % 8) {
        case 0:
        case 1:
          rpc_ff(next(), [](rank_t from, int n) { note(from, n); }, me, i++);
          break;
        case 2:
          rpc_ff(next(), [](int n, rank_t from) { note(from, n); }, i++, me);
          break;
        case 3: {
          std::array<char, 600> much{};
          rpc_ff(
              next(), [](rank_t from, int n, std::array<char, 600>) { note(from, n); }, me, i++,
              much);
          break;
        }
        case 4:
          rpc_ff(
              next(), [](rank_t from, int n, const std::string&) { note(from, n); }, me, i++,
              std::string("text"));
          break;
        case 5:
          rpc_ff(next(), nonblocking(note), me, i++);
          break;
        case 6:
          where.call<&box::put_in>(me, i++);
          break;
        default:
          (void)where.async<&box::append>(me, std::vector<int>{i, i + 1});
          i += 2;
      }
      if (random() % 100 == 0) yield();
      if (random() % 500 == 0) flush();
    }
  });
  barrier();
  const auto& from_before =
      seen[static_cast<std::size_t>((rank_me() + rank_count() - 1) % rank_count())];
  CHECK(from_before.size() >= numbers);
  CHECK(std::is_sorted(from_before.begin(), from_before.end()));
  destroy(where);
  barrier();
}

bool released;
long waiting_now;
void a_call_that_blocks_does_not_hold_up_those_behind_it() {
  restart();
  released = false;
  waiting_now = 0;
  barrier();
  finish([] {
    aggregated here;
    for (int i = 0; i < 200; ++i) {
      // Only what comes behind them in the bundle lets them go on.
      rpc_ff(next(), [] {
        ++waiting_now;
        wait_until([] { return released; });
        ++done;
      });
      rpc_ff(next(), [](long) { ++done; }, 1L);
    }
    rpc_ff(next(), [] { released = true; });
  });
  CHECK_EQUAL(everywhere(), 400 * rank_count());
  CHECK_EQUAL(waiting_now, 200);
  barrier();
}

void calls_made_by_bundled_calls_are_waited_for() {
  restart();
  finish([] {
    aggregated here;
    for (int i = 0; i < 500; ++i) {
      rpc_ff(
          next(),
          [](int depth) {
            struct relay {
              static void on(int left) {
                ++done;
                if (left > 0) rpc_ff(next(), on, left - 1);
              }
            };
            relay::on(depth);
          },
          i % 5);
    }
  });
  CHECK_EQUAL(everywhere(), 500 * 3 * rank_count());
  barrier();
}

void an_exception_of_a_bundled_call_reaches_its_finish() {
  restart();
  CHECK_THROWS(std::domain_error, finish([] {
                 aggregated here;
                 for (int i = 0; i < 100; ++i) {
                   rpc_ff(
                       next(),
                       [](int n) {
                         ++done;
                         if (n == 50) throw std::domain_error("fifty");
                       },
                       i);
                 }
               }));
  CHECK_EQUAL(everywhere(), 100 * rank_count());
  barrier();
}

void a_nonblocking_call_is_a_call() {
  CHECK_EQUAL(rpc(next(), nonblocking([](int a, int b) { return a * b; }), 6, 7).get(), 42);
  CHECK_THROWS(std::domain_error,
               rpc(next(), nonblocking([] { throw std::domain_error("none"); })).get());
  restart();
  released = false;
  barrier();
  finish([] {
    aggregated here;
    for (int i = 0; i < 300; ++i) {
      rpc_ff(next(), nonblocking([](int n) { done += n; }), 1);
      rpc_ff(next(), nonblocking([](int n) { done += n; }), 1);
      // The next one is run by another.
      if (i % 3 == 0) rpc_ff(next(), [] { wait_until([] { return released; }); });
    }
    rpc_ff(next(), nonblocking([] { released = true; }));
  });
  CHECK_EQUAL(everywhere(), 600 * rank_count());
  barrier();
}

void each_nonblocking_call_of_a_run_may_throw() {
  restart();
  CHECK_THROWS(std::domain_error, finish([] {
                 aggregated here;
                 for (int i = 0; i < 100; ++i) {
                   rpc_ff(next(), nonblocking([](int n) {
                            ++done;
                            if (n % 10 == 0) throw std::domain_error("ten");
                          }),
                          i);
                 }
               }));
  CHECK_EQUAL(everywhere(), 100 * rank_count());
  barrier();
}

void finishes_do_not_wait_for_the_calls_of_others() {
  restart();
  released = false;
  barrier();
  aggregated here;
  finish([] {
    // In one bundle only if it were sent whole.
    for (int i = 0; i < 10; ++i) rpc_ff(next(), [] { ++done; });
    finish([] {
      for (int i = 0; i < 10; ++i) rpc_ff(next(), [] { ++done; });
    });
    rpc_ff(next(), [] { ++done; });
  });
  flush();
  CHECK_EQUAL(everywhere(), 21 * rank_count());
  barrier();
}

// What the last call of each chain has set, on its rank.
std::array<bool, 8> ended;

/// The part of a scope that a rank keeps is forgotten when the rank has nothing of it left, and the
/// next scope's may lie at the same address: what is bundled for the one is not the other's.
void scopes_that_pass_a_rank_one_after_the_other_are_told_apart() {
  restart();
  ended = {};
  barrier();
  aggregated here({.age = std::chrono::hours(1)});
  barrier();
  if (rank_me() == 0) {
    auto chain = [](std::size_t i) {
      finish([&] {
        rpc_ff(
            next(),
            [](std::size_t k) {
              rpc_ff(
                  next(),
                  [](std::size_t n) {
                    sleep_for(std::chrono::milliseconds(2));
                    ended[n] = true;
                  },
                  k);
            },
            i);
      });
      const rank_t where = 2 % rank_count();
      CHECK(rpc(where, [](std::size_t n) { return ended[n]; }, i).get());
    };
    std::vector<future<void>> chains;
    for (std::size_t i = 0; i < ended.size(); ++i) chains.push_back(fork([&, i] { chain(i); }));
    for (auto& each : chains) each.get();
  } else if (rank_me() == 1) {
    // All are there when it looks.
    const std::uint64_t until = now_ns() + 20'000'000;
    while (now_ns() < until) {
    }
  }
  barrier();
}

void what_is_bundled_goes_when_the_rank_has_nothing_else_to_do() {
  restart();
  aggregated here;
  rpc_ff(next(), [] { ++done; });
  wait_until([] { return done == 1; });
  CHECK_EQUAL(done, 1);
  barrier();
}

void finish_sends_what_is_bundled_though_the_rank_is_busy() {
  restart();
  aggregated here({.age = std::chrono::hours(1)});
  bool stop = false;
  auto busy = future<void>::of_value().then([&] {
    while (!stop) yield();
  });
  finish([] { rpc_ff(next(), [] { ++done; }); });
  stop = true;
  busy.get();
  CHECK_EQUAL(everywhere(), rank_count());
  barrier();
}

void what_is_old_goes_while_the_rank_is_busy() {
  restart();
  aggregated here({.age = std::chrono::microseconds(1)});
  rpc_ff(next(), [] { ++done; });
  // Always something ready: never idle.
  bool stop = false;
  auto busy = future<void>::of_value().then([&] {
    while (!stop) yield();
  });
  wait_until([] { return done == 1; });
  stop = true;
  busy.get();
  CHECK_EQUAL(done, 1);
  barrier();
}

void an_answer_sees_what_was_bundled_before() {
  restart();
  aggregated here;
  for (int round = 1; round <= 300; ++round) {
    rpc_ff(next(), [] { ++done; });
    rpc_ff(next(), [](int) { ++done; }, round);
    CHECK_EQUAL(rpc(next(), [] { return done; }).get(), 2 * round);
  }
  barrier();
}

void more_than_the_rings_hold_is_bounded() {
  restart();
  finish([] {
    aggregated here({.bytes = 64 << 10});
    for (long i = 0; i < 300'000; ++i) rpc_ff(next(), [](long, long, long) { ++done; }, i, i, i);
  });
  CHECK_EQUAL(everywhere(), 300'000 * rank_count());
  barrier();
}

// ---- Arguments that own memory, and views -------------------------------------------------------

std::vector<std::string> texts;  // of each rank
void keep(const std::string& text, const std::vector<int>& numbers) {
  texts.push_back(text + std::to_string(numbers.size()));
}
std::string text_of(int i) { return std::string(static_cast<std::size_t>(i % 40), 'a') + "."; }

void calls_whose_arguments_own_memory_share_messages() {
  barrier();
  texts.clear();
  barrier();
  constexpr int calls = 3000;
  const counters before = counters_now();
  finish([] {
    aggregated here;
    for (int i = 0; i < calls; ++i)
      rpc_ff(next(), keep, text_of(i), std::vector<int>(static_cast<std::size_t>(i % 7)));
  });
  const counters spent = counters_now() - before;
  barrier();
  CHECK_EQUAL(texts.size(), static_cast<std::size_t>(calls));
  for (int i = 0; i < calls; ++i)
    CHECK(texts[static_cast<std::size_t>(i)] == text_of(i) + std::to_string(i % 7));
  if (alone()) return;
  CHECK_EQUAL(spent.calls_bundled, calls);
  CHECK_EQUAL(spent.calls_not_bundled, 0u);
  CHECK(spent.requests_sent < calls / 20);
}

void views_are_read_in_the_bundle() {
  restart();
  constexpr int calls = 500;
  const counters before = counters_now();
  finish([] {
    aggregated here;
    for (int i = 0; i < calls; ++i) {
      const std::vector<long> some(static_cast<std::size_t>(i % 30), i);
      rpc_ff(
          next(),
          [](view<long> all, int n) {
            for (const long x : all) done += x == n;
          },
          view(some), i);
    }
  });
  const counters spent = counters_now() - before;
  long elements = 0;
  for (int i = 0; i < calls; ++i) elements += i % 30;
  CHECK_EQUAL(everywhere(), rank_count() * elements);
  if (!alone()) CHECK_EQUAL(spent.calls_bundled, calls);
  barrier();
}

/// Values of all lengths and kinds, some of which are too long for a bundle, and calls that wait.
void any_lengths_keep_their_order() {
  seen.assign(static_cast<std::size_t>(rank_count()), {});
  barrier();
  constexpr int calls = 2000;
  const auto noted = [](rank_t from, const std::string& text, int value) {
    CHECK(text.empty() || text.back() == 'x');
    note(from, value);
  };
  finish_all([&] {
    for (int i = 0; i < calls; ++i) {
      const rank_t to = static_cast<rank_t>(i % rank_count());
      if (i % 5 == 0) {
        rpc_ff(to, note, rank_me(), i);
      } else {
        rpc_ff(to, noted, rank_me(),
               std::string(static_cast<std::size_t>(i % 3 == 0 ? i : i % 100), 'x'), i);
      }
      if (i % 7 == 0)
        rpc_ff(
            to,
            [](std::string text) {
              yield();
              CHECK(text == "waits");
            },
            std::string("waits"));
    }
  });
  for (const std::vector<int>& values : seen) {
    CHECK(std::is_sorted(values.begin(), values.end()));
    CHECK(values.size() >= static_cast<std::size_t>(calls / rank_count()));
  }
  barrier();
}

/// Its `save` and its `load` throw when they are told to.
struct reluctant {
  int when = 0;
  std::string text = {};  // so that it is no plain bytes
  template <class Archive>
  void save(Archive& ar) const {
    if (when == 1) throw std::domain_error("not saved");
    ar(when);
  }
  template <class Archive>
  void load(Archive& ar) {
    ar(when);
    if (when == 2) throw std::domain_error("not loaded");
  }
};
void what_cannot_be_marshalled_leaves_the_others_alone() {
  restart();
  const auto count = [](const reluctant&) { ++done; };
  std::string heard;
  try {
    finish([&] {
      aggregated here;
      for (int i = 0; i < 30; ++i) {
        const int when = i == 10 ? 1 : i == 20 ? 2 : 0;
        try {
          rpc_ff(next(), count, reluctant{when});
          CHECK(when != 1);
        } catch (const std::domain_error& e) {
          CHECK_EQUAL(std::string(e.what()), "not saved");
          CHECK_EQUAL(when, 1);
        }
      }
    });
  } catch (const std::domain_error& e) {
    heard = e.what();
  }
  CHECK_EQUAL(heard, "not loaded");
  CHECK_EQUAL(everywhere(), 28L * rank_count());
  barrier();
}

void a_call_that_is_longer_than_a_bundle_goes_alone() {
  restart();
  const counters before = counters_now();
  finish([] {
    aggregated here({.bytes = 256});
    std::array<long, 50> values{};
    values[49] = 1;
    for (int i = 0; i < 100; ++i) {
      rpc_ff(next(), [](std::array<long, 50> v) { done += v[49]; }, values);
      rpc_ff(next(), [](long v) { done += v; }, 1L);
    }
  });
  CHECK_EQUAL((counters_now() - before).calls_bundled, 100);
  CHECK_EQUAL(everywhere(), 200 * rank_count());
  barrier();
}

/// On rank 0 its calls are bundled, elsewhere not.
void a_thread_that_is_moved_between_its_calls_loses_none() {
  restart();
  constexpr long calls = 20'000;
  if (rank_me() == 0) {
    aggregated here({.bytes = 256});
    thread t = spawn([] {
      yield();  // now it is a fiber, which gives others a turn when a bundle is full
      for (long i = 0; i < calls; ++i) {
        rpc_ff(static_cast<rank_t>(i % rank_count()), [](long n) { done += n; }, i);
      }
    });
    for (std::minstd_rand random(1); !t.finished(); yield()) {
      try {
        migrate(t, static_cast<rank_t>(random() % static_cast<unsigned>(rank_count())));
      } catch (const thread_error&) {
      }
    }
    t.join();
  }
  while (everywhere() != calls * (calls - 1) / 2) yield();
}

std::vector<long> passed_on;  // how many calls to each rank
std::vector<long> heard_of;   // the last number from each rank
bool in_order;
/// Sends `width` calls to ranks in turn, each of which does the same, `depth` times.
void pass_on(rank_t from, long number, int depth, int width) {
  ++done;
  long& last = heard_of[static_cast<std::size_t>(from)];
  in_order = in_order && number == last + 1;
  last = number;
  if (depth == 0) return;
  for (int i = 0; i < width; ++i) {
    const auto to = static_cast<rank_t>((done + i) % rank_count());
    rpc_ff(to, pass_on, rank_me(), ++passed_on[static_cast<std::size_t>(to)], depth - 1, width);
  }
}
/// What handlers send goes on in their order, and none of them becomes a fiber for it.
void handlers_that_send_do_not_wait_for_room() {
  restart();
  passed_on.assign(static_cast<std::size_t>(rank_count()), 0);
  heard_of.assign(static_cast<std::size_t>(rank_count()), 0);
  in_order = true;
  // Outside of a finish, whose weight a handler may have to wait for. On all ranks before the first
  // call: a handler that sends its calls alone waits for room, and those behind it do not.
  const aggregated here({.bytes = 1024});
  barrier();
  const counters before = counters_now();
  constexpr int depth = 6;
  constexpr int width = 7;
  long calls = 0;
  for (long i = 0, level = 1; i <= depth; ++i, level *= width) calls += level;
  if (rank_me() == 0)
    rpc_ff(next(), pass_on, 0, ++passed_on[static_cast<std::size_t>(next())], depth, width);
  while (everywhere() != calls) yield();
  const counters spent = counters_now() - before;
  CHECK(in_order);
  CHECK_EQUAL(spent.suspensions_for_room, 0);
}
/// Beyond some memory, handlers do wait for room.
void what_handlers_send_is_bounded() {
  restart();
  if (rank_me() == 0)
    finish([] {
      aggregated here;
      rpc_ff(0, [] {
        std::array<long, 60> values{};
        values[59] = 1;
        for (int i = 0; i < 200'000; ++i)
          rpc_ff(next(), [](const std::array<long, 60>& v) { done += v[59]; }, values);
      });
    });
  const counters spent = counters_now();
  CHECK_EQUAL(everywhere(), 200'000);
  if (rank_me() == 0) CHECK(spent.suspensions_for_room > 0);
}

void sizes_out_of_range_are_refused() {
  CHECK_THROWS(error, aggregated({.bytes = 100}));
  CHECK_THROWS(error, aggregated({.bytes = 2 << 20}));
  CHECK_THROWS(error, rpc_ff(rank_count(), [] {}));
  aggregated here;
  CHECK_THROWS(error, rpc_ff(rank_count(), [] {}));
  CHECK_THROWS(error, rpc_ff(-1, [] {}));
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("many calls take few messages", many_calls_take_few_messages);
    check::claim("any mixture of calls keeps its order", any_mixture_of_calls_keeps_its_order);
    check::claim("a call that blocks does not hold up those behind it",
                 a_call_that_blocks_does_not_hold_up_those_behind_it);
    check::claim("calls made by bundled calls are waited for",
                 calls_made_by_bundled_calls_are_waited_for);
    check::claim("an exception of a bundled call reaches its finish",
                 an_exception_of_a_bundled_call_reaches_its_finish);
    check::claim("a nonblocking call is a call", a_nonblocking_call_is_a_call);
    check::claim("each nonblocking call of a run may throw",
                 each_nonblocking_call_of_a_run_may_throw);
    check::claim("finishes do not wait for the calls of others",
                 finishes_do_not_wait_for_the_calls_of_others);
    check::claim("scopes that pass a rank one after the other are told apart",
                 scopes_that_pass_a_rank_one_after_the_other_are_told_apart);
    check::claim("what is bundled goes when the rank has nothing else to do",
                 what_is_bundled_goes_when_the_rank_has_nothing_else_to_do);
    check::claim("finish sends what is bundled though the rank is busy",
                 finish_sends_what_is_bundled_though_the_rank_is_busy);
    check::claim("what is old goes while the rank is busy",
                 what_is_old_goes_while_the_rank_is_busy);
    check::claim("an answer sees what was bundled before", an_answer_sees_what_was_bundled_before);
    check::claim("more than the rings hold is bounded", more_than_the_rings_hold_is_bounded);
    check::claim("calls whose arguments own memory share messages",
                 calls_whose_arguments_own_memory_share_messages);
    check::claim("views are read in the bundle", views_are_read_in_the_bundle);
    check::claim("any lengths keep their order", any_lengths_keep_their_order);
    check::claim("what cannot be marshalled leaves the others alone",
                 what_cannot_be_marshalled_leaves_the_others_alone);
    check::claim("a call that is longer than a bundle goes alone",
                 a_call_that_is_longer_than_a_bundle_goes_alone);
    check::claim("a thread that is moved between its calls loses none",
                 a_thread_that_is_moved_between_its_calls_loses_none);
    check::claim("handlers that send do not wait for room",
                 handlers_that_send_do_not_wait_for_room);
    check::claim("what handlers send is bounded", what_handlers_send_is_bounded);
    check::claim("sizes out of range are refused", sizes_out_of_range_are_refused);
    return check::verdict();
  });
}
