// SPDX-License-Identifier: Apache-2.0
// Locks of the language around a wait: the second fiber waits until the first one has finished, and
// the rank runs on. Usage: job_language_locks [itself | circle | recursive]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

/// Takes 20 ms, in which the rank runs other fibers.
long slow(long value) {
  return rpc(
             next(),
             [](long v) {
               sleep_for(std::chrono::milliseconds(20));
               return v;
             },
             value)
      .get();
}

constexpr int fibers = 8;

/// Runs fn(0), fn(1), … in fibers of this rank, all at once, and returns what they return.
std::vector<long> at_once(long (*fn)(int)) {
  std::vector<future<long>> all;
  for (int i = 0; i < fibers; ++i) all.push_back(rpc(rank_me(), fn, i));
  return when_all(std::move(all)).get();
}

int initialised = 0;
long counted(long value) {
  ++initialised;
  return slow(value);
}

void a_static_variable_is_initialised_once() {
  initialised = 0;
  bool others_ran = false;
  auto other = rpc(rank_me(), [] { return 7; });
  const std::vector<long> all = at_once([](int) {
    static const long value = counted(42);
    return value;
  });
  others_ran = other.get() == 7;
  CHECK(others_ran);
  for (const long value : all) CHECK_EQUAL(value, 42);
  CHECK_EQUAL(initialised, 1);
}

int attempts = 0;
long fails_twice() {
  const int attempt = ++attempts;
  (void)slow(0);
  if (attempt <= 2) throw std::runtime_error("not yet");
  return attempt;
}

void an_initialisation_that_throws_is_begun_by_the_next() {
  attempts = 0;
  const std::vector<long> all = at_once([](int) {
    try {
      static const long value = fails_twice();
      return value;
    } catch (const std::runtime_error&) {
      return -1L;
    }
  });
  int failed = 0;
  for (const long value : all) {
    failed += value == -1;
    CHECK(value == -1 || value == 3);
  }
  CHECK_EQUAL(failed, 2);
  CHECK_EQUAL(attempts, 3);
}

std::once_flag once;
std::once_flag another;
long of_once = 0;
long of_another = 0;

void call_once_calls_once() {
  initialised = 0;
  const std::vector<long> all = at_once([](int i) {
    // Each with arguments of its own, of which those of the first count.
    if (i % 2 == 0) {
      std::call_once(once, [](long v) { of_once = counted(v); }, 10L);
      return of_once;
    }
    std::call_once(
        another, [](const std::string& v) { of_another = counted(std::stol(v)); },
        std::string("20"));
    return of_another;
  });
  for (int i = 0; i < fibers; ++i)
    CHECK_EQUAL(all[static_cast<std::size_t>(i)], i % 2 == 0 ? 10 : 20);
  CHECK_EQUAL(initialised, 2);
}

std::once_flag in_vain;

void call_once_of_a_function_that_throws_calls_the_next() {
  attempts = 0;
  const std::vector<long> all = at_once([](int i) {
    long mine = 0;
    try {
      std::call_once(in_vain, [&mine, i] {
        (void)fails_twice();
        mine = 100 + i;
      });
      return mine;
    } catch (const std::runtime_error&) {
      return -1L;
    }
  });
  int failed = 0;
  int called = 0;
  for (int i = 0; i < fibers; ++i) {
    const long value = all[static_cast<std::size_t>(i)];
    failed += value == -1;
    called += value == 100 + i;
    CHECK(value == -1 || value == 0 || value == 100 + i);
  }
  CHECK_EQUAL(failed, 2);
  CHECK_EQUAL(called, 1);
}

void statics_within_statics() {
  const std::vector<long> all = at_once([](int i) {
    if (i % 2 == 0) {
      static const long outer = [] {
        static const long inner = slow(5);
        return slow(inner * 2);
      }();
      return outer;
    }
    static const long own = slow(10);
    return own;
  });
  for (const long value : all) CHECK_EQUAL(value, 10);
}

void threads_of_the_system_and_calls_before_run_are_as_ever() {
  static int calls = 0;
  static std::once_flag flag;
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([] {
      std::call_once(flag, [] { ++calls; });
      static const long value = 9;
      if (value != 9) ++calls;
    });
  for (std::thread& t : all) t.join();
  CHECK_EQUAL(calls, 1);
}

long lazily(int) {
  static const long value = slow(11);
  return value;
}
std::once_flag of_children;
long once_of_children = 0;

/// Children in place lie at the same addresses, one after the other, when each is cut off and set
/// aside while it waits.
void children_wait_for_each_other() {
  auto first = fork(lazily, 0);
  auto second = fork(lazily, 1);
  CHECK_EQUAL(first.get() + second.get(), 22);
  par_for(0, 50, [](int) {
    std::call_once(of_children, [] { once_of_children = slow(12); });
    CHECK_EQUAL(once_of_children, 12);
  });
  // Nothing is left open: threads that have done so may move.
  spawn([] {
    fork([] {
      static const long value = slow(13);
      CHECK_EQUAL(value, 13);
    }).get();
    migrate(self(), next());
  }).join();
}

std::recursive_mutex recursive;
int inside = 0;

struct guarded {
  std::recursive_mutex mutex;
  /// Locks it in a frame that is gone when it returns.
  [[gnu::noinline]] std::unique_lock<std::recursive_mutex> guard() {
    volatile char frame[2000];
    frame[0] = 1;
    return frame[0] == 1 ? std::unique_lock(mutex) : std::unique_lock<std::recursive_mutex>();
  }
};

void a_recursive_mutex_is_locked_again_further_up() {
  guarded one;
  const auto first = one.guard();
  const std::lock_guard second(one.mutex);
  (void)slow(0);
  const auto third = one.guard();
  CHECK(third.owns_lock());
}
int most_inside = 0;

void a_recursive_mutex_is_recursive_in_each_fiber() {
  at_once([](int) {
    for (int i = 0; i < 10; ++i) {
      {
        const std::lock_guard one(recursive);
        const std::lock_guard two(recursive);
        const std::lock_guard three(recursive);
        most_inside = std::max(most_inside, ++inside);
        --inside;
      }
      (void)slow(0);
      yield();
    }
    return 0L;
  });
  CHECK_EQUAL(most_inside, 1);
}

/// Alone, a fiber may hold it over a wait, and lock it again afterwards, also in a child.
void one_fiber_may_wait_with_a_recursive_mutex() {
  const std::lock_guard outer(recursive);
  (void)slow(0);
  long found = 0;  // by reference, so that the child stays on this rank
  fork([&found] {
    const std::lock_guard inner(recursive);
    found = 6;
  }).get();
  const std::lock_guard again(recursive);
  CHECK_EQUAL(found, 6);
}

long waits_with_recursive_mutex(int) {
  const std::lock_guard lock(recursive);
  return slow(0);
}

long needs_itself(int n) {
  static const long value = n == 0 ? needs_itself(1) : 1;
  return value;
}

long first_of_circle(int n);
long second_of_circle(int) {
  static const long value = slow(1) + first_of_circle(0);
  return value;
}
long first_of_circle(int) {
  static const long value = slow(1) + second_of_circle(0);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  std::once_flag before;
  int called = 0;
  std::call_once(before, [&] { ++called; });
  return run(argc, argv, [&] {
    if (what == "itself") return static_cast<int>(needs_itself(0));
    if (what == "recursive") return static_cast<int>(at_once(waits_with_recursive_mutex)[0]);
    if (what == "circle") {
      auto a = rpc(rank_me(), first_of_circle, 0);
      auto b = rpc(rank_me(), second_of_circle, 0);
      return static_cast<int>(a.get() + b.get());
    }
    CHECK_EQUAL(called, 1);
    check::claim("a static variable is initialised once", a_static_variable_is_initialised_once);
    check::claim("an initialisation that throws is begun by the next",
                 an_initialisation_that_throws_is_begun_by_the_next);
    check::claim("call_once calls once", call_once_calls_once);
    check::claim("call_once of a function that throws calls the next",
                 call_once_of_a_function_that_throws_calls_the_next);
    check::claim("statics within statics", statics_within_statics);
    check::claim("children wait for each other", children_wait_for_each_other);
    check::claim("a recursive mutex is locked again further up",
                 a_recursive_mutex_is_locked_again_further_up);
    check::claim("a recursive mutex is recursive in each fiber",
                 a_recursive_mutex_is_recursive_in_each_fiber);
    check::claim("one fiber may wait with a recursive mutex",
                 one_fiber_may_wait_with_a_recursive_mutex);
    check::claim("threads of the system and calls before run() are as ever",
                 threads_of_the_system_and_calls_before_run_are_as_ever);
    return check::verdict();
  });
}
