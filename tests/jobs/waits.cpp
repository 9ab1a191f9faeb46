// SPDX-License-Identifier: Apache-2.0
// Waits for the first of several results, and waits with a time limit: whatever ends them, the
// futures stay as they are, and nothing of the wait is left.
#include <array>
#include <chrono>
#include <random>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "check.hpp"
#include "fiber/ticket_table.hpp"
#include "fiber/timers.hpp"

using namespace sojourn;
using namespace std::chrono_literals;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
rank_t last() { return rank_count() - 1; }

/// Answers of a rank that come when they are allowed to.
struct answers {
  static constexpr std::size_t count = 600;
  std::array<bool, count> allowed = {};
  mutex guard;
  condition_variable changed;

  long when_allowed(std::size_t i) {
    std::unique_lock lock(guard);
    changed.wait(lock, [&] { return allowed[i]; });
    allowed[i] = false;
    if (i % 10 == 9) throw std::domain_error("nine");
    return static_cast<long>(i);
  }
  void allow(std::size_t i) {
    allowed[i] = true;
    changed.notify_all();
  }
};
/// One for each rank that asks, on the rank that answers.
std::array<answers, 8>& all_answers() {
  static std::array<answers, 8> all;
  return all;
}
answers& answers_for(rank_t asker) { return all_answers().at(static_cast<std::size_t>(asker)); }

future<long> ask(rank_t rank, std::size_t i) {
  return rpc(
      rank, [](rank_t asker, std::size_t n) { return answers_for(asker).when_allowed(n); },
      rank_me(), i);
}
void allow_for(rank_t asker, rank_t rank, std::size_t i) {
  rpc(rank, [](rank_t a, std::size_t n) { answers_for(a).allow(n); }, asker, i).get();
}
void allow(rank_t rank, std::size_t i) { allow_for(rank_me(), rank, i); }
rank_t rank_of(std::size_t i) { return static_cast<rank_t>(i) % rank_count(); }

/// Takes the answer of ask(…, i).
void take(future<long>& f, std::size_t i) {
  if (i % 10 == 9) {
    CHECK_THROWS(std::domain_error, f.get());
  } else {
    CHECK_EQUAL(f.get(), i);
  }
}

/// What a claim must leave as it was.
struct nothing_left {
  std::size_t tickets = detail::tickets_open();
  std::size_t timers = detail::timers_set();
  ~nothing_left() {
    CHECK_EQUAL(detail::timers_set(), timers);
    CHECK_EQUAL(detail::tickets_open(), tickets);
  }
};

void the_first_answer_ends_the_wait() {
  const nothing_left check;
  auto slow = ask(next(), 0);
  auto other = ask(last(), 1);
  auto voided = rpc(rank_me(), [] { sleep_for(2ms); });
  CHECK_EQUAL(touch_any(slow, voided, other), 1);
  CHECK(!slow.ready() && !other.ready() && voided.ready());
  voided.get();
  allow(last(), 1);
  CHECK_EQUAL(touch_any(slow, other), 1);
  CHECK_EQUAL(touch_any(slow, other), 1);
  take(other, 1);
  CHECK(!slow.ready());
  allow(next(), 0);
  CHECK_EQUAL(touch_any(slow), 0);
  take(slow, 0);
}

void the_futures_come_back() {
  const nothing_left check;
  auto any = when_any(ask(next(), 0), rpc(last(), [] { return 'c'; }), ask(last(), 2));
  static_assert(std::is_same_v<decltype(any.get().futures),
                               std::tuple<future<long>, future<char>, future<long>>>);
  any.wait();
  CHECK(any.valid() && any.ready());
  auto [index, futures] = any.get();
  CHECK(!any.valid());
  CHECK_EQUAL(index, 1);
  auto& [first, second, third] = futures;
  CHECK_EQUAL(second.get(), 'c');
  CHECK(first.valid() && third.valid() && !first.ready());
  allow(last(), 2);
  take(third, 2);
  allow(next(), 0);
  auto moved = when_any(std::move(first));
  auto to = std::move(moved);
  CHECK(!moved.valid());
  auto rest = std::move(to).get();
  CHECK_EQUAL(rest.index, 0);
  take(std::get<0>(rest.futures), 0);
}

void any_number_of_futures() {
  const nothing_left check;
  CHECK_EQUAL(when_any(std::vector<future<int>>{}).get().index, none_of_them);
  CHECK_EQUAL(when_any().get().index, none_of_them);
  CHECK_EQUAL(touch_any(std::span<future<int>>()), none_of_them);
  std::vector<future<long>> all;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < answers::count; ++i) {
    all.push_back(ask(rank_of(i), i));
    of.push_back(i);
  }
  std::minstd_rand random(static_cast<unsigned>(rank_me() + 1));
  while (!all.empty()) {
    const std::size_t chosen = random() % all.size();
    allow(rank_of(of[chosen]), of[chosen]);
    auto got = when_any(std::move(all)).get();
    CHECK_EQUAL(got.index, chosen);
    all = std::move(got.futures);
    take(all[got.index], of[got.index]);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(got.index));
    of.erase(of.begin() + static_cast<std::ptrdiff_t>(got.index));
  }
}

void values_exceptions_and_misuse() {
  auto slow = ask(next(), 3);
  auto here = future<long>::of_value(5);
  CHECK_EQUAL(touch_any(slow, here), 1);
  auto failed = rpc(next(), []() -> long { throw std::domain_error("one"); });
  CHECK_EQUAL(touch_any(slow, failed), 1);
  CHECK_THROWS(std::domain_error, failed.get());
  CHECK_THROWS(error, touch_any(slow, failed));
  auto any = when_any(std::move(slow), std::move(failed));
  CHECK_THROWS(error, any.wait());
  auto got = when_any(std::move(here)).get();
  CHECK_EQUAL(std::get<0>(got.futures).get(), 5);
  // It looks no further than at the first that is ready.
  std::array<future<long>, 2> one_and_none{future<long>::of_value(6)};
  CHECK_EQUAL(touch_any(std::span(one_and_none)), 0);
  CHECK_EQUAL(one_and_none[0].get(), 6);
  CHECK_THROWS(error, touch_any(std::span(one_and_none)));
  any_future<std::tuple<future<long>>> none;
  CHECK_THROWS(error, none.get());
  CHECK_THROWS(error, none.ready());
  CHECK_THROWS(error, failed.wait_for(1ms));
  allow(next(), 3);  // nobody takes that answer
}

void continuations_of_the_first() {
  auto slow = ask(next(), 4);
  auto sum = when_any(std::move(slow), ask(last(), 5)).then([](auto got) {
    CHECK_EQUAL(got.index, 1);
    const long here = std::get<1>(got.futures).get();
    CHECK(!std::get<0>(got.futures).ready());
    allow(next(), 4);
    return here + std::get<0>(got.futures).get();
  });
  CHECK(!sum.wait_for(1ms));
  allow(last(), 5);
  CHECK_EQUAL(sum.get(), 9);
}

void children_are_waited_for() {
  const nothing_left check;
  static latch* opens;
  latch gate(1);
  opens = &gate;
  long mine = 0;
  auto waits = fork([&mine] {
    opens->wait();
    return ++mine;
  });
  // It refers to this frame, or a rank with nothing to do could take it, and its timer.
  auto sleeps = fork([&mine] {
    sleep_for(1ms);
    mine += 0;
  });
  CHECK(!waits.wait_for(100us));
  CHECK_EQUAL(touch_any(waits, sleeps), 1);
  gate.count_down();
  CHECK(waits.wait_for(100s));
  CHECK_EQUAL(waits.get(), 1);
  sleeps.get();
}

void waits_end_at_their_time() {
  const nothing_left check;
  auto late = ask(next(), 6);
  const auto began = now_ns();
  CHECK(!late.wait_for(3ms));
  CHECK(now_ns() - began >= 3'000'000);
  CHECK(!late.wait_for(0s));
  CHECK(!late.wait_for(-1h));
  CHECK(!late.wait_until(std::chrono::steady_clock::now() - 1s));
  CHECK(!late.wait_until(std::chrono::steady_clock::now() + 1ms));
  CHECK(late.valid() && !late.ready());
  allow(next(), 6);
  CHECK(late.wait_for(100s));
  CHECK(late.wait_for(0s));
  CHECK(late.wait_for(1000h));
  take(late, 6);
  CHECK(future<int>::of_value(1).wait_for(0s));

  auto any = when_any(ask(next(), 7), ask(last(), 8));
  CHECK(!any.wait_for(1ms));
  CHECK(!any.ready());
  allow(last(), 8);
  CHECK(any.wait_for(100s));
  CHECK(any.wait_until(std::chrono::steady_clock::now()));
  auto got = any.get();
  CHECK_EQUAL(got.index, 1);
  allow(next(), 7);
  take(std::get<1>(got.futures), 8);
  take(std::get<0>(got.futures), 7);
}

/// A fiber that polls lets others run: what it waits for comes from one of them.
void polls_let_others_run() {
  auto here = rpc(rank_me(), [] {
    for (int i = 0; i < 5; ++i) yield();
  });
  while (!here.wait_for(0s)) {
  }
}

/// The answer comes between the time's end and the turn of the fiber that waited: that is made
/// ready once, not twice.
void results_that_come_with_the_end_of_the_time() {
  const nothing_left check;
  for (int turns = 0; turns < 5; ++turns) {
    auto busy = rpc(
        rank_me(),
        [](int n) {
          yield();  // the other fiber begins to wait
          const std::uint64_t until = now_ns() + 200'000;
          while (now_ns() < until) {
          }
          for (int i = 0; i < n; ++i) yield();
          return n;
        },
        turns);
    (void)busy.wait_for(100us);
    CHECK(busy.wait_for(100s));
    CHECK_EQUAL(busy.get(), turns);
  }
}

/// The rank runs other fibers while one waits for long; and one that has ended its wait is woken by
/// nothing that is still to come.
void nothing_wakes_it_later() {
  const nothing_left check;
  auto first = ask(next(), 10);
  auto second = ask(last(), 11);
  CHECK(!first.wait_for(200us));
  auto any = when_any(std::move(first), std::move(second));
  CHECK(!any.wait_for(200us));
  allow(last(), 11);
  auto got = any.get();
  CHECK_EQUAL(got.index, 1);
  // The answer comes while this fiber waits for something else: for no less than it says.
  allow(next(), 10);
  const auto began = now_ns();
  sleep_for(2ms);
  CHECK(now_ns() - began >= 2'000'000);
  CHECK(rpc(next(), [] { return true; }).get());
  take(std::get<0>(got.futures), 10);
  take(std::get<1>(got.futures), 11);
}

/// Each fiber asks, allows, waits for the first or for a time, and takes, as a model says.
void random_waits_are_those_of_a_model(unsigned seed, std::size_t from, std::size_t count) {
  std::minstd_rand random(seed);
  enum class state { none, asked, allowed };
  std::vector<state> model(count, state::none);
  std::vector<future<long>> futures(count);
  const auto asked = [&] {
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < count; ++i) {
      if (model[i] != state::none) which.push_back(i);
    }
    return which;
  };
  const auto is_allowed = [&](std::size_t i) { return model[i] == state::allowed; };
  for (int step = 0; step < 150; ++step) {
    const std::size_t i = random() % count;
    const unsigned what = random() % 10;
    if (model[i] == state::none) {
      futures[i] = ask(rank_of(from + i), from + i);
      model[i] = state::asked;
    } else if (what < 3 && model[i] == state::asked) {
      allow(rank_of(from + i), from + i);
      model[i] = state::allowed;
    } else if (what < 6) {
      const bool came = futures[i].wait_for(std::chrono::microseconds(random() % 100));
      CHECK(!came || is_allowed(i));
      if (!came || random() % 2 == 0) continue;
      take(futures[i], from + i);
      model[i] = state::none;
    } else {
      const std::vector<std::size_t> which = asked();
      bool comes = false;
      std::vector<future<long>> some;
      for (const std::size_t k : which) {
        comes |= is_allowed(k);
        some.push_back(std::move(futures[k]));
      }
      std::size_t index = none_of_them;
      if (comes) {
        index = touch_any(std::span(some));
        CHECK(index < which.size() && is_allowed(which[index]));
      } else {
        auto any = when_any(std::move(some));
        CHECK(!any.wait_for(std::chrono::microseconds(random() % 100)));
        allow(rank_of(from + which[0]), from + which[0]);
        model[which[0]] = state::allowed;
        auto got = any.get();
        index = got.index;
        CHECK_EQUAL(index, 0);
        some = std::move(got.futures);
      }
      for (std::size_t k = 0; k < which.size(); ++k) futures[which[k]] = std::move(some[k]);
      take(futures[which[index]], from + which[index]);
      model[which[index]] = state::none;
    }
  }
  for (const std::size_t k : asked()) {
    if (!is_allowed(k)) allow(rank_of(from + k), from + k);
    CHECK(futures[k].wait_for(100s));
    take(futures[k], from + k);
  }
}
void random_waits() {
  const nothing_left check;
  constexpr unsigned fibers = 6;
  constexpr std::size_t each = 40;
  std::vector<future<void>> all;
  for (unsigned f = 0; f < fibers; ++f) {
    all.push_back(rpc(
        rank_me(),
        [](unsigned n) {
          const unsigned seed = n * 100 + static_cast<unsigned>(rank_me()) + 1;
          random_waits_are_those_of_a_model(seed, n * each, each);
        },
        f));
  }
  for (auto& f : all) f.get();
}

// ---- With fibers that move ----------------------------------------------------------------------

bool waits_where_it_went() {
  const rank_t home = rank_me();
  std::array<future<long>, 5> all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = ask(rank_of(i), 20 + i);
  future<long> value = future<long>::of_value(7);
  CHECK(!all[3].wait_for(100us));
  // They have been waited for here, and are now on another rank.
  CHECK_EQUAL(touch_any(all[0], value), 1);
  const bool moved = migrate_to(next());
  CHECK(!all[2].wait_for(100us));
  allow_for(home, rank_of(2), 22);
  CHECK_EQUAL(touch_any(std::span(all)), 2);
  take(all[2], 22);
  all[2] = future<long>::of_value(0);
  allow_for(home, rank_of(4), 24);
  CHECK(all[4].wait_for(100s));
  CHECK_EQUAL(touch_any(all[1], all[4], all[3]), 1);
  (void)migrate_to(home);
  CHECK(all[4].ready() || all[4].wait_for(100s));
  take(all[4], 24);
  all[4] = future<long>::of_value(0);
  for (const std::size_t i : {0u, 1u, 3u}) allow_for(home, rank_of(i), 20 + i);
  touch(std::span(all));
  (void)migrate_to(next());
  for (const std::size_t i : {0u, 1u, 3u}) take(all[i], 20 + i);
  return moved;
}
void futures_that_travel() {
  CHECK(activate([] { return waits_where_it_went(); }) || rank_count() == 1);
}

/// Both were awaited together, here; one is read elsewhere.
bool touched_before_it_moves() {
  auto a = rpc(last(), [] { return 1; });
  auto b = rpc(rank_me(), [] {
    sleep_for(500us);
    return 2;
  });
  touch(a, b);
  const bool moved = migrate_to(next());
  CHECK_EQUAL(a.get() + b.get(), 3);
  return moved;
}
void touched_and_moved() {
  CHECK(activate([] { return touched_before_it_moves(); }) || rank_count() == 1);
}

int waiting = 0;

/// Waits while others move it.
void waits_and_is_moved(rank_t home, std::size_t from, bool limited) {
  std::array<future<long>, 4> all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = rpc(
        rank_of(i), [](rank_t asker, std::size_t n) { return answers_for(asker).when_allowed(n); },
        home, from + i);
  }
  rpc_ff(home, [] { ++waiting; });
  for (std::size_t left = all.size(); left > 0; --left) {
    std::size_t i = none_of_them;
    if (limited) {
      // Until an answer comes, in short waits for one after the other.
      for (std::size_t k = 0; i == none_of_them; k = (k + 1) % all.size()) {
        if (all[k].valid() && all[k].wait_for(500us)) i = k;
      }
      take(all[i], from + i);
    } else {
      std::array<future<long>, 4> some;
      std::array<std::size_t, 4> of{};
      std::size_t count = 0;
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (!all[k].valid()) continue;
        of[count] = k;
        some[count++] = std::move(all[k]);
      }
      i = of[touch_any(std::span(some.data(), count))];
      for (std::size_t k = 0; k < count; ++k) all[of[k]] = std::move(some[k]);
      take(all[i], from + i);
    }
    rpc_ff(home, [] { ++waiting; });
  }
}

void threads_that_others_move() {
  std::minstd_rand random(static_cast<unsigned>(rank_me()) + 5);
  constexpr std::size_t threads = 10;
  std::vector<thread> all;
  waiting = 0;
  for (std::size_t t = 0; t < threads; ++t) {
    all.push_back(spawn(waits_and_is_moved, rank_me(), 100 + t * 4, t % 2 == 1));
  }
  while (waiting < static_cast<int>(threads)) yield();
  const auto move_some = [&] {
    for (int n = 0; n < 4; ++n) {
      try {
        migrate(all[random() % threads], static_cast<rank_t>(random() % rank_count()));
      } catch (const thread_error&) {
        // It waits for what its rank alone can tell, or has ended.
      }
    }
  };
  for (const std::size_t i : {2u, 0u, 3u, 1u}) {
    move_some();
    const int before = waiting;
    for (std::size_t t = 0; t < threads; ++t) allow(rank_of(i), 100 + t * 4 + i);
    move_some();
    while (waiting < before + static_cast<int>(threads)) yield();
  }
  for (thread& t : all) t.join();
}

// ---- Locks and semaphores with a limit ----------------------------------------------------------

constexpr int contenders = 30;
struct contended {
  mutex guard;
  semaphore places{3};
  int arrived = 0;
  int last_served = -1;
  int inside = 0;
  int served = 0;
  int gave_up = 0;

  void use(int most, std::minstd_rand& random) {
    CHECK(++inside <= most);
    ++served;
    if (random() % 2 == 0) yield();
    if (random() % 8 == 0) sleep_for(std::chrono::microseconds(random() % 100));
    --inside;
  }
};
contended* fought_for;

template <class Try>
void fight(Try try_it) {
  static Try* how;
  how = &try_it;
  contended all;
  fought_for = &all;
  std::vector<future<void>> done;
  for (int i = 0; i < contenders; ++i) {
    done.push_back(rpc(
        rank_me(),
        [](int n) {
          std::minstd_rand random(static_cast<unsigned>(n * 10 + rank_me() + 1));
          for (int round = 0; round < 20; ++round) {
            if (!(*how)(*fought_for, std::chrono::microseconds(random() % 200), random))
              ++fought_for->gave_up;
            if (random() % 4 == 0) yield();
          }
        },
        i));
  }
  for (auto& f : done) f.get();
  CHECK_EQUAL(all.served + all.gave_up, contenders * 20);
  CHECK(all.served > 0);
  CHECK(all.guard.try_lock());
  all.guard.unlock();
  for (int i = 0; i < 3; ++i) CHECK(all.places.try_acquire());
  CHECK(!all.places.try_acquire());
  // Whoever is still in a queue would end the job when these are destroyed.
}

void locks_with_a_limit() {
  const nothing_left check;
  fight([](contended& all, std::chrono::microseconds limit, std::minstd_rand& random) {
    const int number = all.arrived++;
    std::unique_lock lock(all.guard, std::defer_lock);
    if (random() % 4 == 0) {
      lock.lock();
    } else if (!lock.try_lock_for(limit)) {
      return false;
    }
    CHECK(number > all.last_served);  // in the order in which they came
    all.last_served = number;
    all.use(1, random);
    return true;
  });
  static bool has_given_up;
  has_given_up = false;
  mutex m;
  m.lock();
  CHECK_THROWS(error, m.try_lock_for(1ms));
  CHECK(!std::unique_lock(m, std::try_to_lock).owns_lock());
  auto other = rpc(
      rank_me(),
      [](std::uint64_t at) {
        auto& held = *reinterpret_cast<mutex*>(at);
        const auto began = now_ns();
        CHECK(!held.try_lock_for(2ms));
        CHECK(now_ns() - began >= 2'000'000);
        CHECK(!held.try_lock_for(0s));
        CHECK(!held.try_lock_until(std::chrono::steady_clock::now() - 1s));
        has_given_up = true;
        const bool locked = held.try_lock_until(std::chrono::steady_clock::now() + 1000h);
        CHECK(locked && held.is_mine());
        held.unlock();
      },
      reinterpret_cast<std::uint64_t>(&m));
  while (!has_given_up) yield();
  CHECK(!other.wait_for(1ms));
  m.unlock();
  other.get();
  CHECK(std::unique_lock(m, 0s).owns_lock());
}

void units_with_a_limit() {
  const nothing_left check;
  fight([](contended& all, std::chrono::microseconds limit, std::minstd_rand& random) {
    if (random() % 4 == 0) {
      all.places.acquire();
    } else if (!all.places.try_acquire_for(limit)) {
      return false;
    }
    all.use(3, random);
    all.places.release();
    return true;
  });
  semaphore none(0);
  CHECK(!none.try_acquire_for(1ms));
  CHECK(!none.try_acquire_until(std::chrono::steady_clock::now()));
  none.release();
  CHECK(none.try_acquire_for(0s));
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("the first answer ends the wait", the_first_answer_ends_the_wait);
    check::claim("the futures come back", the_futures_come_back);
    check::claim("any number of futures", any_number_of_futures);
    check::claim("values, exceptions and misuse", values_exceptions_and_misuse);
    check::claim("continuations of the first", continuations_of_the_first);
    check::claim("children are waited for", children_are_waited_for);
    check::claim("waits end at their time", waits_end_at_their_time);
    check::claim("polls let others run", polls_let_others_run);
    check::claim("results that come with the end of the time",
                 results_that_come_with_the_end_of_the_time);
    check::claim("nothing wakes it later", nothing_wakes_it_later);
    check::claim("random waits", random_waits);
    check::claim("futures that travel", futures_that_travel);
    check::claim("futures that were touched and moved", touched_and_moved);
    check::claim("threads that others move", threads_that_others_move);
    check::claim("locks with a limit", locks_with_a_limit);
    check::claim("units with a limit", units_with_a_limit);
    return check::verdict();
  });
}
