// SPDX-License-Identifier: Apache-2.0
// Sleeping: fibers wake when their time has come and not before, in the order of their times, while
// their rank does other work or sleeps itself.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "base/clock.hpp"
#include "check.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/timers.hpp"

using namespace sojourn;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
rank_t last() { return rank_count() - 1; }

double cpu_seconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

struct woken {
  std::uint64_t due;
  int number;
};
std::vector<woken> in_order;

bool began_late = false;

/// False when the host was so busy that some began after they were due.
bool wake_in_order(std::uint64_t lead_ns) {
  in_order.clear();
  began_late = false;
  constexpr int sleepers = 500;
  std::uint64_t start = now_ns() + lead_ns;
  std::vector<future<void>> all;
  for (int i = 0; i < sleepers; ++i) {
    // Each time several times.
    std::uint64_t due = start + static_cast<std::uint64_t>(i * 7919 % 100) * 100'000;
    all.push_back(rpc(
        rank_me(),
        [](std::uint64_t at, int number) {
          began_late |= now_ns() + 1'000'000 >= at;
          sleep_until(clock_type::time_point(std::chrono::nanoseconds(at)));
          CHECK(now_ns() >= at);
          in_order.push_back({at, number});
        },
        due, i));
  }
  for (auto& f : all) f.get();
  if (began_late) return false;
  CHECK_EQUAL(in_order.size(), sleepers);
  // Of two for one time the first to fall asleep is the first to wake.
  CHECK(std::is_sorted(in_order.begin(), in_order.end(), [](const woken& a, const woken& b) {
    return std::pair(a.due, a.number) < std::pair(b.due, b.number);
  }));
  return true;
}

void sleepers_wake_in_order_of_their_times() {
  std::uint64_t lead_ns = 50'000'000;
  while (!wake_in_order(lead_ns)) lead_ns *= 2;
}

void random_sleeps_are_never_short() {
  std::vector<future<int>> all;
  for (unsigned i = 0; i < 60; ++i) {
    all.push_back(rpc(
        next(),
        [](unsigned seed) {
          std::minstd_rand random(seed);
          int short_ones = 0;
          for (int n = 0; n < 20; ++n) {
            auto span = std::chrono::microseconds(random() % 4000);
            auto began = clock_type::now();
            if (random() % 4 == 0) yield();
            sleep_for(span);
            short_ones += clock_type::now() - began < span;
          }
          return short_ones;
        },
        i * 1000 + static_cast<unsigned>(rank_me()) + 1));
  }
  for (auto& f : all) CHECK_EQUAL(f.get(), 0);
}

int steps = 0;
void others_run_while_one_sleeps() {
  steps = 0;
  auto other = rpc(rank_me(), [] {
    for (int i = 0; i < 100; ++i) {
      yield();
      ++steps;
    }
  });
  // Once, unless the host is busy.
  for (int i = 0; i < 100 && steps < 100; ++i) sleep_for(100ms);
  CHECK_EQUAL(steps, 100);
  other.get();
}

bool asleep = false;
bool sleeps_are_over = false;
int seen_asleep = 0;
void a_rank_whose_main_sleeps_answers() {
  asleep = false;
  barrier();
  if (rank_me() == 0) {
    // Until all others have found it asleep: once, unless the host is busy.
    for (int i = 0; i < 100 && seen_asleep < rank_count() - 1; ++i) {
      auto end = clock_type::now() + 100ms;
      asleep = true;
      sleep_until(end);
      asleep = false;
      CHECK(clock_type::now() >= end);
    }
    CHECK_EQUAL(seen_asleep, rank_count() - 1);
    sleeps_are_over = true;
  } else {
    // No other fiber of rank 0 runs than its main, so what is answered while `asleep` holds is
    // answered in its sleep.
    while (!rpc(0, [] {
              seen_asleep += asleep;
              return asleep || sleeps_are_over;
            }).get()) {
    }
  }
}

void a_sleeping_job_uses_no_processor_time() {
  barrier();
  double cpu = cpu_seconds();
  auto others = rpc(rank_me(), [] {
    for (int i = 0; i < 4; ++i) sleep_for(200ms);
  });
  sleep_for(1s);
  others.get();
  barrier();
  CHECK(cpu_seconds() - cpu < 0.05);
}

bool rang = false;
void sleepers_wake_though_replies_keep_coming() {
  rang = false;
  auto alarm = rpc(rank_me(), [] {
    sleep_for(20ms);
    rang = true;
  });
  std::uint64_t give_up = now_ns() + 10'000'000'000;
  while (!rang && now_ns() < give_up) rpc(next(), [] { return 1; }).get();
  CHECK(rang);
  alarm.get();
}
void sleepers_wake_though_others_yield() {
  rang = false;
  auto alarm = rpc(rank_me(), [] {
    sleep_for(20ms);
    rang = true;
  });
  std::uint64_t give_up = now_ns() + 10'000'000'000;
  while (!rang && now_ns() < give_up) yield();
  CHECK(rang);
  alarm.get();
}

bool has_run = false;
void a_time_that_is_past_lets_others_run() {
  for (auto sleeps : {+[] { sleep_for(0s); }, +[] { sleep_for(-5s); },
                      +[] { sleep_until(clock_type::now() - 1s); },
                      +[] { sleep_until(clock_type::time_point::min()); }}) {
    has_run = false;
    auto other = rpc(rank_me(), [] {
      yield();
      has_run = true;
    });
    // Until the message is taken from the way, and the fiber has run twice.
    const std::uint64_t give_up = now_ns() + 10'000'000'000;
    while (!has_run && now_ns() < give_up) sleeps();
    CHECK(has_run);
    other.get();
  }
}

void activations_sleep_where_they_are() {
  CHECK_EQUAL(activate(
                  [](rank_t there) {
                    sleep_for(5ms);
                    migrate_to(there);
                    auto began = now_ns();
                    sleep_for(5ms);
                    return rank_me() == there && now_ns() - began >= 5'000'000;
                  },
                  last()),
              true);
}

/// A sleeper of this rank, as the runtime knows it.
detail::piece* some_sleeper() {
  detail::piece* found = nullptr;
  detail::each_piece(
      [](detail::piece* p, void* context) {
        if (p->waits == detail::wait_cause::timer) *static_cast<detail::piece**>(context) = p;
      },
      &found);
  return found;
}

void woken_early_they_sleep_on() {
  auto due = clock_type::now() + 50ms;
  auto f = rpc(
      rank_me(),
      [](std::int64_t ns) {
        sleep_until(clock_type::time_point(std::chrono::nanoseconds(ns)));
        return now_ns() >= static_cast<std::uint64_t>(ns);
      },
      static_cast<std::int64_t>(due.time_since_epoch().count()));
  int wakes = 0;
  while (!f.ready() && wakes < 5) {
    detail::piece* p = some_sleeper();
    if (p != nullptr) {
      CHECK_EQUAL(detail::timer_of(p), due.time_since_epoch().count());
      CHECK(detail::cancel_timer(p));
      CHECK(!detail::cancel_timer(p));
      CHECK(p->waits == detail::wait_cause::none);
      detail::make_ready(p, detail::resumed::anywhere);
      ++wakes;
    }
    yield();
  }
  CHECK(f.get());
  CHECK(clock_type::now() >= due);
  CHECK_EQUAL(detail::timers_set(), 0);
}

struct sleeper {
  bool awake = false;
  bool nap() {
    sleep_for(20ms);
    return awake = true;
  }
};
void a_fork_that_sleeps_lets_its_caller_go_on() {
  auto mine = make<sleeper>(rank_me());
  auto f = mine.async<&sleeper::nap>(via::rpc);
  CHECK(!mine.local()->awake);
  CHECK(f.get());
  destroy(mine);
}

void thousands_sleep_at_once() {
  constexpr int sleepers = 3000;
  std::vector<future<int>> all;
  auto began = clock_type::now();
  for (int i = 0; i < sleepers; ++i) {
    all.push_back(rpc(
        rank_me(),
        [](int n) {
          sleep_for(std::chrono::microseconds(n * 17 % 50'000));
          return n;
        },
        i));
  }
  int sum = 0;
  for (auto& f : all) sum += f.get();
  CHECK_EQUAL(sum, sleepers * (sleepers - 1) / 2);
  CHECK(clock_type::now() - began >= 49ms);
}

constexpr std::uint64_t hour_ns = 3'600'000'000'000;

/// The rank sleeps in its loop, between fibers that sleep: all by a clock of the test.
void a_day_passes_at_once_by_a_test_clock() {
  // Other ranks have clocks of their own, and so have messages that are delayed.
  if (rank_count() != 1 || std::getenv("SOJOURN_DELAY") != nullptr) return;
  const std::uint64_t start = now_ns();
  const detail::test_clock clock(start);
  auto day = rpc(rank_me(), [] {
    sleep_for(24h);
    return now_ns();
  });
  for (std::uint64_t hours = 1; hours <= 23; ++hours) {
    sleep_for(1h);
    CHECK_EQUAL(now_ns() - start, hours * hour_ns);
    CHECK(!day.ready());
  }
  CHECK_EQUAL(day.get() - start, 24 * hour_ns);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("sleepers wake in order of their times", sleepers_wake_in_order_of_their_times);
    check::claim("random sleeps are never short", random_sleeps_are_never_short);
    check::claim("others run while one sleeps", others_run_while_one_sleeps);
    check::claim("a rank whose main sleeps answers", a_rank_whose_main_sleeps_answers);
    check::claim("a sleeping job uses no processor time", a_sleeping_job_uses_no_processor_time);
    check::claim("sleepers wake though replies keep coming",
                 sleepers_wake_though_replies_keep_coming);
    check::claim("sleepers wake though others yield", sleepers_wake_though_others_yield);
    check::claim("a time that is past lets others run", a_time_that_is_past_lets_others_run);
    check::claim("activations sleep where they are", activations_sleep_where_they_are);
    check::claim("woken early they sleep on", woken_early_they_sleep_on);
    check::claim("a fork that sleeps lets its caller go on",
                 a_fork_that_sleeps_lets_its_caller_go_on);
    check::claim("thousands sleep at once", thousands_sleep_at_once);
    check::claim("a day passes at once by a test clock", a_day_passes_at_once_by_a_test_clock);
    return check::verdict();
  });
}
