// SPDX-License-Identifier: Apache-2.0
// The right to answer a wait goes on as a value: replied to in place, stored, sent to other ranks,
// and answered once.
#include <sys/resource.h>

#include <array>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "resident.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
rank_t at_random(std::uint64_t x) {
  return static_cast<rank_t>(x % static_cast<unsigned>(rank_count()));
}

void add_one(continuation<int> answer, int x) { answer(x + 1); }
void pass_on(continuation<int> answer, int x, int times) {
  if (times == 0) return add_one(std::move(answer), x);
  pass_on(std::move(answer), x + 1, times - 1);
}

void a_chain_that_replies_at_once_is_calls() {
  const counters before = counters_now();
  CHECK_EQUAL(call_cc(add_one, 3), 4);
  CHECK_EQUAL(call_cc(pass_on, 3, 20), 24);
  CHECK_EQUAL(call_cc([](continuation<std::string> c, const char* s) { c(s); }, "words"),
              std::string("words"));
  call_cc([](continuation<void> c) { c(); });
  const counters made = counters_now() - before;
  CHECK_EQUAL(made.switches + made.messages(), 0u);
}

// ---- User-made synchronisation ------------------------------------------------------------------

/// A variable that is written once, and read by any number.
template <class T>
struct single_assignment {
  std::optional<T> value;
  std::vector<continuation<T>> readers;

  void read(continuation<T> answer) {
    if (value) return answer(*value);
    readers.push_back(std::move(answer));
  }
  void write(T v) {
    value = v;
    for (auto& r : std::exchange(readers, {})) r(v);
  }
};

struct meeting {
  int expected;
  std::vector<continuation<int>> here;

  void arrive(continuation<int> answer) {
    here.push_back(std::move(answer));
    if (static_cast<int>(here.size()) < expected) return;
    for (int i = 0; auto& c : std::exchange(here, {})) c(i++);
  }
};

/// Two at a time change their values.
struct exchanger {
  std::optional<std::pair<continuation<long>, long>> first;

  void swap(continuation<long> answer, long mine) {
    if (!first) {
      first.emplace(std::move(answer), mine);
      return;
    }
    auto [other, theirs] = std::move(*first);
    first.reset();
    other(mine);
    answer(theirs);
  }
};

void cells_barriers_and_rendezvous_are_made_of_them() {
  global_ptr<single_assignment<long>> cell;
  global_ptr<meeting> all;
  global_ptr<exchanger> pairs;
  if (rank_me() == 0) {
    cell = make<single_assignment<long>>(0);
    all = make<meeting>(rank_count() - 1, rank_count(), std::vector<continuation<int>>());
    pairs = make<exchanger>(0);
  }
  cell = broadcast(cell, 0);
  all = broadcast(all, 0);
  pairs = broadcast(pairs, 0);
  // The readers wait first, on every rank.
  std::vector<future<long>> readers;
  for (int i = 0; i < 5; ++i) {
    readers.push_back(fork([&] { return call_cc<&single_assignment<long>::read>(cell); }));
  }
  barrier();
  if (rank_me() == 0) cell.call<&single_assignment<long>::write>(77L);
  for (auto& r : readers) CHECK_EQUAL(r.get(), 77);
  const int place = call_cc<&meeting::arrive>(all);
  CHECK_EQUAL(reduce(place, std::plus<>{}), rank_count() * (rank_count() - 1) / 2);
  auto mine = fork([&] { return call_cc<&exchanger::swap>(pairs, 10L * rank_me()); });
  const long other = call_cc<&exchanger::swap>(pairs, 10L * rank_me() + 1);
  const long swapped = reduce(mine.get() + other, std::plus<>{});
  CHECK_EQUAL(swapped, 20L * rank_count() * (rank_count() - 1) / 2 + rank_count());
  barrier();
  if (rank_me() == 0) {
    destroy(cell);
    destroy(all);
    destroy(pairs);
  }
}

// ---- Forwarding ---------------------------------------------------------------------------------

void forward(continuation<long> answer, long x, int hops) {
  if (hops == 0) return answer(x);
  rpc_ff(next(), forward, std::move(answer), x + 1, hops - 1);
}

void a_reply_comes_straight_from_the_last_rank() {
  for (int hops = 0; hops < 6; ++hops) {
    CHECK_EQUAL(call_cc(forward, 10L, hops), 10 + hops);
    CHECK_EQUAL(rpc_cc(next(), forward, 10L, hops).get(), 10 + hops);
  }
  barrier();
  if (rank_count() < 3) return;
  // Of a chain 0 -> 1 -> 2 only the last rank answers.
  const counters before = counters_now();
  barrier();
  if (rank_me() == 0) CHECK_EQUAL(call_cc(forward, 0L, 2), 2);
  barrier();
  const counters made = counters_now() - before;
  CHECK_EQUAL(made.replies_sent, rank_me() == 2 ? 1u : 0u);
  CHECK_EQUAL(made.requests_sent, rank_me() < 2 ? 1u : 0u);
}

void a_million_forwards_take_no_memory() {
  // Where ranks share cores, most hops take a switch of processes.
  const int hops = sanitized || rank_count() > 2 ? 100'000 : 1'000'000;
  (void)call_cc(forward, 0L, 1000);
  barrier();
  const long before = resident_kib();
  if (rank_me() == 0) CHECK_EQUAL(call_cc(forward, 0L, hops), hops);
  barrier();
  CHECK(sanitized || resident_kib() - before < 4 << 10);
}

void with_arguments_that_own_memory() {
  const auto answer_length = [](continuation<std::size_t> answer, const std::string& s) {
    rpc_ff(
        next(), [](continuation<std::size_t> c, std::vector<char> v) { c(v.size()); },
        std::move(answer), std::vector<char>(s.begin(), s.end()));
  };
  CHECK_EQUAL(rpc_cc(next(), answer_length, std::string(3000, 'x')).get(), 3000u);
  CHECK_EQUAL(call_cc(answer_length, std::string(20, 'x')), 20u);
  const auto answer_text = [](continuation<std::string> c, int n) {
    c(std::string(static_cast<std::size_t>(n), 'y'));
  };
  CHECK_EQUAL(rpc_cc(next(), answer_text, 5000).get(), std::string(5000, 'y'));
}

// ---- Errors -------------------------------------------------------------------------------------

[[gnu::noinline]] int forgets() {
  return call_cc([](continuation<int>) {});
}
[[gnu::noinline]] future<int> forgets_there() {
  return rpc_cc(next(), [](continuation<int>) {});
}
template <class Body>
std::string text_of(Body body) {
  try {
    body();
  } catch (const continuation_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

/// Still has its right to reply when the program ends.
std::array<continuation<long>, 8> kept_for_ever;

void one_may_outlive_the_job() {
  for (auto& each : kept_for_ever) each = make_continuation<long>().first;
}

void one_that_is_dropped_is_an_error_that_names_its_maker() {
  CHECK(text_of([] { (void)forgets(); }).find("forgets()") != std::string::npos);
  CHECK(text_of([] { (void)forgets_there().get(); }).find("destroyed") != std::string::npos);
  // Stored, and then dropped.
  std::optional<continuation<int>> kept;
  auto child = fork([&] { return call_cc([&](continuation<int> c) { kept = std::move(c); }); });
  CHECK(!child.ready());
  kept.reset();
  CHECK_THROWS(continuation_error, child.get());
}

void a_second_reply_is_an_error() {
  CHECK_THROWS(continuation_error, call_cc([](continuation<int> c) {
                 c(1);
                 c(2);
               }));
  auto [c, result] = make_continuation<long>();
  CHECK(static_cast<bool>(c));
  c(5L);
  CHECK(!c);
  CHECK_THROWS(continuation_error, c(6L));
  CHECK_THROWS(continuation_error, c.fail(std::make_exception_ptr(error("late"))));
  CHECK_EQUAL(result.get(), 5);
}

void failures_are_answers() {
  CHECK_THROWS(std::out_of_range, call_cc([](continuation<int>) -> void {
                 throw std::out_of_range("before it replied");
               }));
  CHECK_THROWS(std::length_error, call_cc([](continuation<int> c) {
                 c.fail(std::make_exception_ptr(std::length_error("an answer")));
               }));
  CHECK_THROWS(std::length_error, rpc_cc(next(), [](continuation<int> c) {
                                    c.fail(std::make_exception_ptr(std::length_error("there")));
                                  }).get());
}

struct picky {
  explicit picky(int v) : value(v) {
    if (v < 0) throw std::domain_error("negative");
  }
  int value;
};

void a_value_that_cannot_be_made_leaves_the_right_to_reply() {
  const auto tries_twice = [](continuation<picky> c) {
    CHECK_THROWS(std::domain_error, c(-1));
    CHECK(static_cast<bool>(c));
    c(4);
  };
  CHECK_EQUAL(call_cc(tries_twice).value, 4);
  auto [c, result] = make_continuation<picky>();
  CHECK_THROWS(std::domain_error, c(-1));
  c(5);
  CHECK_EQUAL(result.get().value, 5);
  // The caller has gone, by an exception; a late reply is nobody's.
  std::optional<continuation<int>> kept;
  CHECK_THROWS(std::out_of_range, call_cc([&](continuation<int> late) {
                 kept = std::move(late);
                 throw std::out_of_range("after it was stored");
               }));
  (*kept)(3);
}

// ---- Whatever its frames do ---------------------------------------------------------------------

/// Goes on with the continuation in ways that `seed` says, and replies with a number that it also
/// says.
void wander(continuation<std::uint64_t> answer, std::uint64_t seed, int steps) {
  const std::uint64_t then = seed * 6364136223846793005u + 1442695040888963407u;
  if (steps == 0) return answer(seed);
  const std::uint64_t choice = then >> 40;
  switch (choice % 7) {
    case 0:
      return wander(std::move(answer), then, steps - 1);
    case 1:
      return rpc_ff(at_random(choice / 7), wander, std::move(answer), then, steps - 1);
    case 2:
      yield();
      return wander(std::move(answer), then, steps - 1);
    case 3:
      return activate(wander, std::move(answer), then, steps - 1);
    case 4: {
      auto child = fork(wander, std::move(answer), then, steps - 1);
      return child.get();
    }
    case 5:
      migrate_to(at_random(choice / 7));
      return wander(std::move(answer), then, steps - 1);
    default: {
      auto child = fork([&] { wander(std::move(answer), then, steps - 1); });
      yield();
      return child.get();
    }
  }
}
std::uint64_t wanders_to(std::uint64_t seed, int steps) {
  for (; steps > 0; --steps) seed = seed * 6364136223846793005u + 1442695040888963407u;
  return seed;
}

void it_goes_where_its_frames_go() {
  std::mt19937_64 random(static_cast<unsigned>(rank_me()) + 5);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t seed = random();
    const int steps = static_cast<int>(random() % 12);
    std::uint64_t found = 0;
    switch (i % 3) {
      case 0:
        found = call_cc(wander, seed, steps);
        break;
      case 1:
        found = rpc_cc(at_random(seed), wander, seed, steps).get();
        break;
      default:
        found = activate([](std::uint64_t s, int n) { return call_cc(wander, s, n); }, seed, steps);
    }
    CHECK_EQUAL(found, wanders_to(seed, steps));
  }
}

// ---- Futures touched in sets --------------------------------------------------------------------

void a_set_is_waited_for_once() {
  auto [first, a] = make_continuation<int>();
  auto [second, b] = make_continuation<long>();
  auto [third, c] = make_continuation<void>();
  auto child = fork([&, &x = a, &y = b, &z = c] {
    touch(x, y, z);
    return x.get() + static_cast<int>(y.get());
  });
  // What runs on this rank while this fiber gives its turn, itself among it.
  auto switches_in_turns = [] {
    const std::uint64_t before = counters_now().switches;
    for (int i = 0; i < 4; ++i) yield();
    return counters_now().switches - before;
  };
  barrier();                  // no rank has called another yet
  (void)switches_in_turns();  // a child with a context of its own begins now
  const std::uint64_t alone = switches_in_turns();
  second(2L);
  third();
  CHECK_EQUAL(switches_in_turns(), alone);  // the child is not woken for what is not all
  CHECK(!child.ready());
  first(1);
  CHECK_EQUAL(switches_in_turns(), alone + 1);
  CHECK_EQUAL(child.get(), 3);
  barrier();
  std::vector<future<int>> many;
  for (int i = 0; i < 100; ++i)
    many.push_back(rpc(
        at_random(static_cast<unsigned>(i)),
        [](int x) {
          if (x % 3 == 0) yield();
          return x;
        },
        i));
  touch(std::span(many));
  for (int i = 0; i < 100; ++i) {
    CHECK(many[static_cast<std::size_t>(i)].ready());
    CHECK_EQUAL(many[static_cast<std::size_t>(i)].get(), i);
  }
  auto failed = rpc(next(), []() -> int { throw std::out_of_range("there"); });
  auto good = rpc(next(), [] { return 1; });
  touch(failed, good);
  CHECK_THROWS(std::out_of_range, failed.get());
  CHECK_THROWS(error, touch(failed, good));
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a chain that replies at once is calls", a_chain_that_replies_at_once_is_calls);
    check::claim("cells, barriers and rendezvous are made of them",
                 cells_barriers_and_rendezvous_are_made_of_them);
    check::claim("a reply comes straight from the last rank",
                 a_reply_comes_straight_from_the_last_rank);
    check::claim("a million forwards take no memory", a_million_forwards_take_no_memory);
    check::claim("with arguments that own memory", with_arguments_that_own_memory);
    check::claim("one may outlive the job", one_may_outlive_the_job);
    check::claim("one that is dropped is an error that names its maker",
                 one_that_is_dropped_is_an_error_that_names_its_maker);
    check::claim("a second reply is an error", a_second_reply_is_an_error);
    check::claim("failures are answers", failures_are_answers);
    check::claim("a value that cannot be made leaves the right to reply",
                 a_value_that_cannot_be_made_leaves_the_right_to_reply);
    check::claim("it goes where its frames go", it_goes_where_its_frames_go);
    check::claim("a set is waited for once", a_set_is_waited_for_once);
    return check::verdict();
  });
}
