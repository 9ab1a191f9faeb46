// SPDX-License-Identifier: Apache-2.0
// Children run in place until they block, and mean the same wherever they run: in place, cut off,
// or on stacks of their own (SOJOURN_EXECUTION=heap).
#include <algorithm>
#include <array>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

bool on_heap() {
  const char* way = std::getenv("SOJOURN_EXECUTION");
  return way != nullptr && std::strcmp(way, "heap") == 0;
}

long there(long x) {
  return rpc(next(), [](long y) { return y; }, x).get();
}
long fibonacci(long n) {
  if (n < 2) return n;
  auto older = fork(fibonacci, n - 1);
  const long younger = fibonacci(n - 2);
  return older.get() + younger;
}
/// Blocks in each leaf.
long fibonacci_there(long n) {
  if (n < 2) return there(n);
  auto older = fork(fibonacci_there, n - 1);
  const long younger = fibonacci_there(n - 2);
  return older.get() + younger;
}

void children_that_do_not_block_run_at_once() {
  int step = 0;
  const counters before = counters_now();
  auto child = fork([&] { return ++step; });
  const int seen = step;
  const counters made = counters_now() - before;
  CHECK_EQUAL(made.forks, 1u);
  if (on_heap()) {
    CHECK_EQUAL(made.forks_on_heap, 1u);
    CHECK_EQUAL(seen, 0);
    CHECK(!child.ready());
  } else {
    CHECK_EQUAL(seen, 1);
    CHECK(child.ready());
    CHECK_EQUAL(made.forks_on_heap + made.forks_blocked + made.cuts + made.switches, 0u);
  }
  CHECK_EQUAL(child.get(), 1);
  CHECK_EQUAL(fibonacci(16), 987);
}

void the_caller_goes_on_when_a_child_blocks() {
  std::string order;
  const counters before = counters_now();
  latch let(1);
  auto child = fork([&] {
    order += on_heap() ? "" : "a";
    let.wait();
    order += "c";
    return 7;
  });
  const counters made = counters_now() - before;
  order += on_heap() ? "ab" : "b";
  let.count_down();
  CHECK_EQUAL(child.get(), 7);
  CHECK_EQUAL(order, std::string("abc"));
  // On a stack of its own it is no caller's that it blocks on.
  CHECK_EQUAL(made.forks_blocked, on_heap() ? 0u : 1u);
  CHECK_EQUAL(fibonacci_there(10), 55);
}

void several_children_wait_together() {
  const counters before = counters_now();
  std::array<future<long>, 4> all;
  for (long i = 0; i < 4; ++i) all[static_cast<std::size_t>(i)] = fork(there, i);
  const counters made = counters_now() - before;
  // One may go to a rank that has nothing to do.
  if (!on_heap()) CHECK_EQUAL(made.forks_blocked + made.steals, 4u);
  long sum = 0;
  for (auto& f : all) sum += f.get();
  CHECK_EQUAL(sum, 6);
}

void exceptions_come_out_of_get() {
  auto at_once = fork([](int x) -> int { throw std::out_of_range(std::to_string(x)); }, 3);
  auto later = fork(
      [](int x) -> int {
        (void)there(x);
        throw std::length_error(std::to_string(x));
      },
      4);
  auto nothing = fork([] { throw std::domain_error("none"); });
  auto good = fork(there, 5L);
  CHECK_THROWS(std::length_error, later.get());
  CHECK_THROWS(std::out_of_range, at_once.get());
  CHECK_THROWS(std::domain_error, nothing.get());
  CHECK_EQUAL(good.get(), 5);
  // One that nobody asks for is nobody's.
  {
    const auto dropped = fork([] { throw std::domain_error("dropped"); });
  }
}

/// A type that nobody registered. Counts the objects that there are.
struct no_solution {
  explicit no_solution(int at) : depth(at) { ++alive; }
  no_solution(const no_solution& other) : depth(other.depth) { ++alive; }
  ~no_solution() { --alive; }
  no_solution& operator=(const no_solution&) = default;
  int depth;
  static inline int alive = 0;
};
int fails(int depth) { throw no_solution(depth); }
int fails_later(int depth) {
  (void)there(depth);
  throw no_solution(depth);
}

/// What is thrown comes out as a no_solution of `depth`, unless a rank that had nothing to do has
/// taken the child.
template <class F>
void check_no_solution(int depth, F f) {
  const std::uint64_t steals = counters_now().steals;
  try {
    f();
    CHECK(!"thrown");
  } catch (const no_solution& e) {
    CHECK_EQUAL(e.depth, depth);
  } catch (const remote_exception&) {
    CHECK(counters_now().steals != steals);
  }
}

void exceptions_of_any_type_stay_themselves_on_their_rank() {
  int x = 3;
  check_no_solution(1, [] { fork(fails, 1).get(); });
  check_no_solution(2, [] { fork(fails_later, 2).get(); });
  check_no_solution(3, [&] { fork([&] { return fails(x); }).get(); });
  check_no_solution(3, [&] { fork([&] { return fails_later(x); }).get(); });
  check_no_solution(3, [&] { par_invoke([&] { fails(x); }, [] {}); });
  check_no_solution(4, [] { par_for(0, 8, [](int i) { i == 4 ? fails(i) : there(i); }); });
  check_no_solution(5, [] { fork([] { return fork(fails, 5).get(); }).get(); });
  check_no_solution(6, [] { rpc(rank_me(), fails, 6).get(); });
  check_no_solution(7, [] { fork(fails, 7).then([](int y) { return y; }).get(); });
  check_no_solution(8, [] {
    auto first = fork(fails, 8);
    auto second = fork(fails_later, 9);
    touch(first, second);
    first.get();
  });
  {
    const auto dropped = fork(fails, 1);
    const auto dropped_before_it_throws = fork(
        [](int y) {
          yield();
          return fails(y);
        },
        2);
  }
  yield();
  barrier();
  CHECK_EQUAL(no_solution::alive, 0);
}

int gets_elsewhere(int depth) {
  auto child = fork(fails, depth);
  migrate_to(next());
  return child.get();
}
void an_exception_that_is_asked_for_elsewhere_travels_as_bytes() {
  if (rank_count() == 1) return;
  try {
    activate(gets_elsewhere, 1);
    CHECK(!"thrown");
  } catch (const remote_exception& e) {
    CHECK(e.type_name().ends_with("no_solution"));
  }
  barrier();
  CHECK_EQUAL(no_solution::alive, 0);
}

void a_child_refers_to_its_callers_frame() {
  std::array<long, 64> local{};
  {
    auto child = fork([&] {
      for (std::size_t i = 0; i < local.size(); ++i) local[i] = there(static_cast<long>(i));
    });
    local[0] = 1;  // meanwhile, and the child then sets it
    child.get();
  }
  CHECK_EQUAL(std::accumulate(local.begin(), local.end(), 0L), 63L * 64 / 2);
}

long last_written;
void leave_by_exception() {
  std::array<long, 32> local{};
  auto child = fork([&] {
    for (std::size_t i = 0; i < local.size(); ++i) local[i] = there(static_cast<long>(i));
    last_written = local.back();
  });
  throw std::runtime_error("before the child has ended");
}

void a_future_of_such_a_child_waits_for_it() {
  long local = 0;
  {
    const auto dropped = fork([&] { local = there(3); });
  }
  CHECK_EQUAL(local, 3);
  last_written = 0;
  CHECK_THROWS(std::runtime_error, leave_by_exception());
  CHECK_EQUAL(last_written, 31);
}

void frames_that_a_child_refers_to_do_not_leave() {
  const long sum = activate([] {
    long local = 1;
    const rank_t before = rank_me();
    auto child = fork([&] {
      for (int i = 0; i < 5; ++i) yield();
      local += there(41);
    });
    migrate_to(next());  // refused
    CHECK_EQUAL(rank_me(), before);
    child.get();
    return local;
  });
  CHECK_EQUAL(sum, 42);
}

// How far the next two are.
int phase;
void wait_for_phase(rank_t home, int wanted) {
  while (rpc(home, [] { return phase; }).get() < wanted) {
  }
}
/// Its stack is free on its rank while it is elsewhere, and another fiber takes it.
void leaves_and_comes_back(rank_t home) {
  migrate_to(next());
  rpc(home, [] { phase = 1; }).get();
  wait_for_phase(home, 2);
  migrate_to(home);
  phase = 3;
  while (phase < 4) yield();
}
long waits_for_a_child_that_refers() {
  long local = 1;
  auto child = fork([&] {
    phase = 2;
    while (phase < 3) yield();
    local += 41;
    phase = 4;
  });
  child.get();
  return local;
}
void a_child_finds_its_callers_frame_though_another_came_in_its_place() {
  if (rank_me() != 0) return;
  for (int i = 0; i < 3; ++i) {
    phase = 0;
    auto visitor = rpc(rank_me(), leaves_and_comes_back, rank_me());
    while (phase < 1) yield();
    auto caller = rpc(rank_me(), waits_for_a_child_that_refers);
    CHECK_EQUAL(caller.get(), 42);
    visitor.get();
  }
}

void results_own_memory() {
  auto short_one = fork([n = 3] { return std::vector<int>(static_cast<std::size_t>(n), 4); });
  auto long_one =
      fork([n = 70000L] { return std::string(static_cast<std::size_t>(there(n)), 'x'); });
  CHECK_EQUAL(short_one.get().size(), 3u);
  CHECK_EQUAL(long_one.get().size(), 70000u);
  auto moved = fork(there, 9L);
  future<long> other = std::move(moved);
  CHECK_EQUAL(other.then([](long x) { return 2 * x; }).get(), 18);
}

void captures_are_aligned() {
  struct alignas(128) line {
    long word = 0;
  };
  const auto place = [](const line& l) { return reinterpret_cast<std::uintptr_t>(&l) % 128; };
  for (long i = 0; i < 5; ++i) {
    CHECK_EQUAL(fork([l = line{i}, place] { return place(l); }).get(), 0u);
    CHECK_EQUAL(fork(place, line{i}).get(), 0u);
  }
}

void children_of_children_belong_to_them() {
  constexpr long count = 300;
  std::vector<long> sums(count);
  std::vector<future<void>> children;
  for (long i = 0; i < count; ++i) {
    children.push_back(fork([&sums, i] {
      std::array<long, 3> parts{};
      std::array<future<void>, 3> theirs;
      for (long k = 0; k < 3; ++k) {
        theirs[static_cast<std::size_t>(k)] = fork([&parts, i, k] {
          yield();
          parts[static_cast<std::size_t>(k)] = i + k;
          yield();
        });
      }
      touch(theirs[0], theirs[1], theirs[2]);
      for (const long part : parts) sums[static_cast<std::size_t>(i)] += part;
    }));
  }
  for (future<void>& each : children) each.get();
  for (long i = 0; i < count; ++i) CHECK_EQUAL(sums[static_cast<std::size_t>(i)], 3 * i + 3);
}

void loops_run_each_index_once() {
  for (const int n : {0, 1, 2, 7, 100, 1000}) {
    for (const int grain : {1, 3, 64, 5000}) {
      std::vector<int> times(static_cast<std::size_t>(n));
      par_for(0, n, [&](int i) { ++times[static_cast<std::size_t>(i)]; }, grain);
      CHECK(times == std::vector<int>(static_cast<std::size_t>(n), 1));
      const long sum = par_reduce(
          0, n, 0L, [](int i) { return static_cast<long>(i); },
          [](long a, long b) { return a + b; }, grain);
      CHECK_EQUAL(sum, static_cast<long>(n) * (n - 1) / 2);
    }
  }
  // In order, however it is bracketed.
  const std::string letters = par_reduce(
      0, 26, std::string("none"), [&](int i) { return std::string(1, static_cast<char>('a' + i)); },
      [](std::string a, const std::string& b) { return a + b; });
  CHECK_EQUAL(letters, std::string("abcdefghijklmnopqrstuvwxyz"));
  CHECK_EQUAL(par_reduce(3, 3, 17, [](int i) { return i; }, std::plus<>{}), 17);
  // Of more indices than the greatest of them.
  int times = 0;
  par_for<std::int8_t>(-128, 127, [&](std::int8_t) { ++times; });
  CHECK_EQUAL(times, 255);
  constexpr int least = std::numeric_limits<int>::min();
  constexpr int most = std::numeric_limits<int>::max();
  const auto begins = [](std::vector<int> a, const std::vector<int>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  CHECK(sojourn::detail::middle_of(least, most) == -1 &&
        sojourn::detail::count_between(least, most) == ~0u);
  CHECK(!sojourn::detail::is_run(least, most, most) && sojourn::detail::is_run(least, -1, most));
  CHECK(par_reduce<long>(
            std::numeric_limits<long>::max() - 3, std::numeric_limits<long>::max(),
            std::vector<int>{}, [](long i) { return std::vector<int>{static_cast<int>(i % 10)}; },
            begins) == (std::vector<int>{4, 5, 6}));
  CHECK_THROWS(error, par_for(0, 3, [](int) {}, 0));
}

void bodies_that_block_do_so_together() {
  constexpr int bodies = 200;
  latch all(bodies);
  int ended = 0;
  // Ends only when each waits while the others come.
  par_for(0, bodies, [&](int) {
    all.arrive_and_wait();
    ++ended;
  });
  CHECK_EQUAL(ended, bodies);
  const counters before = counters_now();
  long sum = 0;  // captured: none leaves
  par_for(0, bodies, [&](int i) { sum += there(i); });
  CHECK_EQUAL(sum, bodies * (bodies - 1L) / 2);
  if (!on_heap()) CHECK((counters_now() - before).forks_blocked >= bodies - 1u);
}

void a_window_bounds_the_bodies_under_way() {
  for (const std::size_t in_flight : {1u, 2u, 7u, 1000u}) {
    constexpr int bodies = 300;
    std::size_t under_way = 0;
    std::size_t most = 0;
    std::vector<int> begun;
    par_for(0, bodies,
            [&](int i) {
              begun.push_back(i);
              most = std::max(most, ++under_way);
              (void)there(i);
              --under_way;
            },
            {.in_flight = in_flight});
    CHECK_EQUAL(under_way, 0u);
    CHECK(most <= in_flight);
    if (in_flight <= bodies && !on_heap()) CHECK_EQUAL(most, in_flight);
    CHECK_EQUAL(begun.size(), static_cast<std::size_t>(bodies));
    CHECK(std::is_sorted(begun.begin(), begun.end()));
  }
  CHECK_THROWS(error, par_for(0, 3, [](int) {}, {.in_flight = 0}));
  par_for(3, 3, [](int) { CHECK(false); }, {.in_flight = 4});
  // Of a range as long as its type allows.
  long times = 0;
  par_for<std::int8_t>(-128, 127, [&](std::int8_t) { ++times; }, {.in_flight = 3});
  CHECK_EQUAL(times, 255);
}

void in_a_window_nobody_waits_for_the_longest() {
  // The first call ends when the last one has come, which is far beyond a window.
  latch last(1);
  int ended = 0;
  par_for(0, 1000,
          [&](int i) {
            if (i == 0) last.wait();
            if (i == 999) last.count_down();
            (void)there(i);
            ++ended;
          },
          {.in_flight = 4});
  CHECK_EQUAL(ended, 1000);
  // All are called, also when one throws.
  ended = 0;
  CHECK_THROWS(std::out_of_range, par_for(0, 50,
                                          [&](int i) {
                                            (void)there(i);
                                            if (i == 20) throw std::out_of_range("20");
                                            ++ended;
                                          },
                                          {.in_flight = 4}));
  CHECK_EQUAL(ended, 49);
}

void what_a_body_throws_comes_out_at_the_end() {
  int ended = 0;
  CHECK_THROWS(std::out_of_range, par_for(0, 50, [&](int i) {
                 (void)there(i);
                 if (i == 20) throw std::out_of_range("20");
                 ++ended;
               }));
  CHECK_EQUAL(ended, 49);
  int calls = 0;
  par_invoke([&] { calls += static_cast<int>(there(1)); }, [&] { calls += 10; },
             [&] { calls += static_cast<int>(there(100)); });
  CHECK_EQUAL(calls, 111);
}

// ---- Handlers and tasks that leave a child behind -----------------------------------------------

int children_ended = 0;  // of each rank: where they ran
void end_later(int) {
  sleep_for(std::chrono::milliseconds(2));
  ++children_ended;
}
void leave_a_child(int i) { const auto forgotten = fork(end_later, i); }

void a_finish_waits_for_what_its_handlers_left_behind() {
  children_ended = 0;
  barrier();
  finish([] {
    for (int i = 0; i < 5; ++i) rpc_ff(next(), leave_a_child, i);
  });
  barrier();
  CHECK_EQUAL(reduce(children_ended, std::plus<>{}), 5 * rank_count());
  finish([] {
    for (int i = 0; i < 5; ++i) {
      const auto forgotten = future<int>::of_value(i).then(leave_a_child);
    }
  });
  barrier();  // others' children may have ended here
  CHECK_EQUAL(reduce(children_ended, std::plus<>{}), 10 * rank_count());
}

latch* crowd_goes = nullptr;
void stay_in_the_crowd() { crowd_goes->wait(); }

/// Where stacks are shared, too: more fibers wait than have one of their own.
void a_bundle_is_done_once_whatever_it_leaves_behind() {
  latch let(1);
  crowd_goes = &let;
  children_ended = 0;
  barrier();
  finish([] {
    const int crowd = sanitized ? 20 : 1100;
    for (int i = 0; i < crowd; ++i) rpc_ff(next(), stay_in_the_crowd);
    for (int round = 0; round < 5; ++round) {
      {
        aggregated here;
        for (int i = 0; i < 10; ++i) rpc_ff(next(), leave_a_child, i);
      }
      there(round);
    }
    barrier();
    crowd_goes->count_down();
  });
  barrier();
  CHECK_EQUAL(reduce(children_ended, std::plus<>{}), 50 * rank_count());
}

[[gnu::noinline]] double third() {
  volatile double one = 1, three = 3;
  volatile double ratio = one / three;
  return ratio;
}
const double nearest_third = third();

void a_child_that_waits_keeps_its_rounding_to_itself() {
  std::fesetround(FE_DOWNWARD);
  auto child = fork([] {
    const int from_caller = std::fegetround();
    std::fesetround(FE_UPWARD);
    (void)there(1);
    const int own = std::fegetround();
    const bool is_upward = third() > nearest_third;
    std::fesetround(FE_TONEAREST);
    return std::array{from_caller, own, static_cast<int>(is_upward)};
  });
  const int while_it_waits = std::fegetround();
  const bool is_downward = third() == nearest_third;  // which is below it
  const auto [from_caller, own, is_upward] = child.get();
  const int afterwards = std::fegetround();
  std::fesetround(FE_TONEAREST);
  // On a stack of its own it begins as every fiber does.
  if (!on_heap()) CHECK_EQUAL(from_caller, FE_DOWNWARD);
  CHECK_EQUAL(own, FE_UPWARD);
  CHECK_EQUAL(is_upward, 1);
  CHECK_EQUAL(while_it_waits, FE_DOWNWARD);
  CHECK(is_downward);
  CHECK_EQUAL(afterwards, FE_DOWNWARD);
}

/// More children than have stacks of their own at a time, all blocked, each referring to a frame. A
/// child costs the same however many there are: with each looking at all others the test would not
/// end in time.
void very_many_children_block() {
  const int children = sanitized ? 1500 : 100'000 / rank_count();
  std::vector<long> values(static_cast<std::size_t>(children));
  latch let(1);
  std::vector<future<void>> all;
  for (int i = 0; i < children; ++i) {
    all.push_back(fork([&, i] {
      let.wait();
      values[static_cast<std::size_t>(i)] = i;
    }));
    if (i % 100 == 0) yield();
  }
  let.count_down();
  for (auto& f : all) f.get();
  for (int i = 0; i < children; ++i) CHECK_EQUAL(values[static_cast<std::size_t>(i)], i);
}

// ---- Random trees, against their serial evaluation ----------------------------------------------

struct tree {
  std::uint64_t seed;
  std::uint64_t serial(int depth) const;
  std::uint64_t parallel(int depth) const;
};

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 32);
}
tree child_of(const tree& t, std::uint64_t i) { return {mixed(t.seed + 0x1234567 * (i + 1))}; }
unsigned children_of(const tree& t, int depth) {
  return depth == 0 ? 0u : static_cast<unsigned>(t.seed >> 8) % 4;
}
bool throws(const tree& t) { return t.seed % 61 == 0; }

std::uint64_t tree::serial(int depth) const {
  std::uint64_t sum = seed;
  for (unsigned i = 0; i < children_of(*this, depth); ++i) {
    try {
      sum = mixed(sum + child_of(*this, i).serial(depth - 1));
    } catch (const std::range_error&) {
      sum = mixed(sum + 1);
    }
  }
  if (throws(*this)) throw std::range_error("as it goes");
  return sum;
}

std::uint64_t evaluate(tree t, int depth);

void block_somehow(const tree& t) {
  switch (t.seed % 7) {
    case 0:
      yield();
      break;
    case 1:
      (void)there(1);
      break;
    case 2:
      (void)rpc(static_cast<rank_t>(t.seed / 7 % static_cast<unsigned>(rank_count())), [] {
        yield();
      }).get();
      break;
    default:
      break;
  }
}

std::uint64_t tree::parallel(int depth) const {
  std::vector<future<std::uint64_t>> all;
  const unsigned n = children_of(*this, depth);
  block_somehow({mixed(seed + 1)});
  for (unsigned i = 0; i < n; ++i) {
    const tree c = child_of(*this, i);
    switch (c.seed % 5) {
      case 0:
        all.push_back(fork(evaluate, c, depth - 1));
        break;
      case 1:
        all.push_back(rpc(static_cast<rank_t>(c.seed % static_cast<unsigned>(rank_count())),
                          evaluate, c, depth - 1));
        break;
      default:
        all.push_back(fork([c, depth, this] {
          block_somehow(*this);
          return c.parallel(depth - 1);
        }));
    }
  }
  block_somehow(*this);
  std::uint64_t sum = seed;
  for (auto& f : all) {
    try {
      sum = mixed(sum + f.get());
    } catch (const std::range_error&) {
      sum = mixed(sum + 1);
    }
    block_somehow({mixed(sum)});
  }
  if (throws(*this)) throw std::range_error("as it goes");
  return sum;
}

std::uint64_t evaluate(tree t, int depth) { return t.parallel(depth); }

void random_trees_give_what_serial_ones_do() {
  const int trees = sanitized ? 20 : 60;
  for (int i = 0; i < trees; ++i) {
    const tree t{mixed(static_cast<std::uint64_t>(i * 64 + rank_me()))};
    std::uint64_t wanted = 0;
    std::uint64_t found = 0;
    try {
      wanted = t.serial(7);
    } catch (const std::range_error&) {
      wanted = 1;
    }
    try {
      found = t.parallel(7);
    } catch (const std::range_error&) {
      found = 1;
    }
    CHECK_EQUAL(found, wanted);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("children that do not block run at once", children_that_do_not_block_run_at_once);
    check::claim("the caller goes on when a child blocks", the_caller_goes_on_when_a_child_blocks);
    check::claim("several children wait together", several_children_wait_together);
    check::claim("exceptions come out of get", exceptions_come_out_of_get);
    check::claim("exceptions of any type stay themselves on their rank",
                 exceptions_of_any_type_stay_themselves_on_their_rank);
    check::claim("an exception that is asked for elsewhere travels as bytes",
                 an_exception_that_is_asked_for_elsewhere_travels_as_bytes);
    check::claim("a child refers to its caller's frame", a_child_refers_to_its_callers_frame);
    check::claim("a future of such a child waits for it", a_future_of_such_a_child_waits_for_it);
    check::claim("children of children belong to them", children_of_children_belong_to_them);
    check::claim("frames that a child refers to do not leave",
                 frames_that_a_child_refers_to_do_not_leave);
    check::claim("a child finds its caller's frame though another came in its place",
                 a_child_finds_its_callers_frame_though_another_came_in_its_place);
    check::claim("results own memory", results_own_memory);
    check::claim("captures are aligned", captures_are_aligned);
    check::claim("loops run each index once", loops_run_each_index_once);
    check::claim("bodies that block do so together", bodies_that_block_do_so_together);
    check::claim("a window bounds the bodies under way", a_window_bounds_the_bodies_under_way);
    check::claim("in a window nobody waits for the longest",
                 in_a_window_nobody_waits_for_the_longest);
    check::claim("what a body throws comes out at the end",
                 what_a_body_throws_comes_out_at_the_end);
    check::claim("a finish waits for what its handlers left behind",
                 a_finish_waits_for_what_its_handlers_left_behind);
    check::claim("a bundle is done once, whatever it leaves behind",
                 a_bundle_is_done_once_whatever_it_leaves_behind);
    check::claim("a child that waits keeps its rounding to itself",
                 a_child_that_waits_keeps_its_rounding_to_itself);
    check::claim("very many children block", very_many_children_block);
    check::claim("random trees give what serial ones do", random_trees_give_what_serial_ones_do);
    return check::verdict();
  });
}
