// SPDX-License-Identifier: Apache-2.0
// Remote calls of functions: futures, exceptions, what a handler may do.
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "check.hpp"
#include "fiber/ticket_table.hpp"

using namespace sojourn;

namespace app {
/// Registered, constructible from its what().
struct refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Registered, trivially copyable.
struct code {
  int number;
  rank_t where;
};
/// Registered nowhere.
struct stranger : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct not_even_standard {
  int x;
};
}  // namespace app
SOJOURN_EXCEPTION(app::refused);
SOJOURN_EXCEPTION(app::code);

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
rank_t last() { return rank_count() - 1; }

int twice(int x) { return 2 * x; }
void nothing_much() {}
long sum_of(std::array<long, 8> values, char c) {
  long sum = c;
  for (long v : values) sum += v;
  return sum;
}
int pause_us(int us) {
  std::uint64_t until = now_ns() + static_cast<std::uint64_t>(us) * 1000;
  while (now_ns() < until) yield();
  return us;
}

void functions_and_lambdas() {
  for (rank_t r = 0; r < rank_count(); ++r) {
    CHECK_EQUAL(rpc(r, twice, 21).get(), 42);
    CHECK_EQUAL(rpc(r, &twice, -1).get(), -2);
    CHECK_EQUAL(rpc(r, [] { return rank_me(); }).get(), r);
    CHECK_EQUAL(rpc(r, [](int a, double b) { return a + b; }, 1, 0.5).get(), 1.5);
    CHECK_EQUAL(rpc(r, std::plus<int>{}, 3, 4).get(), 7);
    rpc(r, nothing_much).get();
    CHECK_EQUAL(rpc(r, sum_of, std::array<long, 8>{1, 2, 3, 4, 5, 6, 7, 8}, '\1').get(), 37);
    auto p = rpc(
                 r, [](std::pair<int, long> v) { return std::tuple(v.second, v.first, true); },
                 std::pair(1, 2L))
                 .get();
    CHECK(p == std::tuple(2L, 1, true));
    CHECK_EQUAL(rpc(
                    r, [](inline_string<12> s) { return inline_string<20>(s.str() + "!"); },
                    inline_string<12>("hello"))
                    .get()
                    .view(),
                "hello!");
  }
}

void ready_wait_and_valid() {
  auto f = rpc(next(), pause_us, 2000);
  CHECK(f.valid());
  CHECK(!f.ready());
  f.wait();
  CHECK(f.ready());
  CHECK(f.valid());
  f.wait();
  auto g = std::move(f);
  CHECK(!f.valid());
  CHECK(!f.ready());
  CHECK(g.ready());
  CHECK_EQUAL(g.get(), 2000);
  CHECK(!g.valid());
  CHECK_THROWS(error, g.get());
  CHECK_THROWS(error, g.wait());
  CHECK_THROWS(error, future<int>().get());
  auto polled = rpc(next(), pause_us, 100);
  while (!polled.ready()) yield();
  CHECK_EQUAL(polled.get(), 100);
}

void an_unread_result_is_dropped() {
  barrier();
  const std::size_t tickets = sojourn::detail::tickets_open();
  for (int i = 0; i < 10000; ++i) {
    auto f = rpc(next(), twice, i);
    if (i % 3 == 0) f = rpc(next(), twice, i);
  }
  {
    auto thrown = rpc(next(), []() -> int { throw std::runtime_error("nobody asks"); });
  }
  // Answers of a rank come in the order of its calls, and those of calls that have not blocked
  // first.
  CHECK_EQUAL(rpc(next(), twice, 1).get(), 2);
  for (int i = 0; i < 10'000 && sojourn::detail::tickets_open() != tickets; ++i) {
    rpc(next(), [] {}).get();
  }
  CHECK_EQUAL(sojourn::detail::tickets_open(), tickets);
}

void results_taken_in_any_order() {
  std::vector<future<int>> all;
  for (int i = 0; i < 500; ++i) all.push_back(rpc(i % rank_count(), twice, i));
  for (int i = 499; i >= 0; i -= 2) CHECK_EQUAL(all[static_cast<std::size_t>(i)].get(), 2 * i);
  for (int i = 0; i < 500; i += 2) CHECK_EQUAL(all[static_cast<std::size_t>(i)].get(), 2 * i);
}

void continuations() {
  rank_t me = rank_me();
  CHECK_EQUAL(
      rpc(next(), twice, 4).then([me](int x) { return rank_me() == me ? x + 1 : -1; }).get(), 9);
  // Results of `then` stay on this rank, so they may hold anything.
  auto text = rpc(next(), twice, 5).then([](int x) { return std::to_string(x); });
  CHECK_EQUAL(text.get(), "10");
  auto owned = rpc(next(), twice, 6).then([](int x) { return std::make_unique<int>(x); });
  CHECK_EQUAL(*owned.get(), 12);
  int seen = 0;
  rpc(next(), nothing_much).then([&seen] { seen = 1; }).get();
  CHECK_EQUAL(seen, 1);
  // A continuation may wait and call.
  CHECK_EQUAL(rpc(next(), twice, 1)
                  .then([](int x) { return rpc(last(), twice, x).get(); })
                  .then([](int x) { return x * 10; })
                  .get(),
              40);
  // On a result that is here already.
  auto f = rpc(next(), twice, 7);
  f.wait();
  CHECK_EQUAL(f.then([](int x) { return x; }).get(), 14);
  // What the call threw passes by, what the continuation throws arrives.
  int called = 0;
  auto failing = rpc(next(), []() -> int { throw std::out_of_range("far"); }).then([&](int x) {
    called = 1;
    return x;
  });
  CHECK_THROWS(std::out_of_range, failing.get());
  CHECK_EQUAL(called, 0);
  auto throwing = rpc(next(), twice, 1).then([](int) -> int { throw app::code{3, rank_me()}; });
  CHECK_THROWS(app::code, throwing.get());
  // An unread chain runs all the same.
  int ran = 0;
  {
    auto dropped = rpc(next(), twice, 1).then([&ran](int) { ran = 1; });
  }
  while (ran == 0) yield();
}

/// Neither its bytes nor what it holds can go to another rank.
class of_its_rank {
 public:
  static inline int alive = 0;
  of_its_rank() { ++alive; }
  of_its_rank(of_its_rank&&) noexcept { ++alive; }
  of_its_rank& operator=(of_its_rank&&) = delete;
  ~of_its_rank() { --alive; }
};
static_assert(!sojourn::detail::is_result<of_its_rank>);

future<of_its_rank> make_one() {
  return future<void>::of_value().then([] { return of_its_rank(); });
}
/// True when the result, which stays where it is, is refused.
bool asks_elsewhere(rank_t there) {
  auto made = make_one();
  made.wait();
  migrate_to(there);
  try {
    (void)made.get();
    return false;
  } catch (const error&) {
    return true;
  }
}

void results_that_cannot_travel() {
  const std::size_t tickets = sojourn::detail::tickets_open();
  {
    const of_its_rank taken = make_one().get();
  }
  CHECK_EQUAL(of_its_rank::alive, 0);
  {
    auto unread = make_one();
    unread.wait();
    CHECK_EQUAL(of_its_rank::alive, 1);
  }
  CHECK_EQUAL(of_its_rank::alive, 0);
  {
    auto dropped_before_it_is_made = make_one();
  }
  future<void>::of_value().then([] {}).get();
  CHECK_EQUAL(of_its_rank::alive, 0);
  auto thrown =
      future<void>::of_value().then([]() -> of_its_rank { throw std::domain_error("none"); });
  CHECK_THROWS(std::domain_error, thrown.get());
  CHECK_EQUAL(sojourn::detail::tickets_open(), tickets);
  barrier();  // other ranks ask the last one, which has tickets for them meanwhile
  CHECK_EQUAL(activate(asks_elsewhere, last()), last() != rank_me());
  CHECK_EQUAL(of_its_rank::alive, 0);
}

void all_of_several() {
  auto t =
      when_all(rpc(next(), twice, 1), rpc(last(), nothing_much), rpc(0, [] { return 'c'; })).get();
  CHECK_EQUAL(std::get<0>(t), 2);
  CHECK_EQUAL(std::get<2>(t), 'c');
  static_assert(std::is_same_v<decltype(t), std::tuple<int, std::monostate, char>>);
  std::vector<future<int>> some;
  for (int i = 0; i < 100; ++i) some.push_back(rpc(i % rank_count(), twice, i));
  auto results = when_all(std::move(some)).get();
  CHECK_EQUAL(results.size(), 100u);
  for (int i = 0; i < 100; ++i) CHECK_EQUAL(results[static_cast<std::size_t>(i)], 2 * i);
  std::vector<future<void>> voids;
  for (int i = 0; i < 10; ++i) voids.push_back(rpc(i % rank_count(), nothing_much));
  when_all(std::move(voids)).get();
  CHECK_EQUAL(when_all(std::vector<future<int>>{}).get().size(), 0u);
  when_all().get();
  auto one_fails =
      when_all(rpc(next(), twice, 1), rpc(next(), []() -> int { throw std::domain_error("one"); }));
  CHECK_THROWS(std::domain_error, one_fails.get());
  // Never suspends: another fiber's turn does not come before it returns.
  int turns = 0;
  auto other = rpc(
      rank_me(), [](std::uint64_t at) { ++*reinterpret_cast<int*>(at); },
      reinterpret_cast<std::uint64_t>(&turns));
  auto both = when_all(rpc(last(), pause_us, 500), std::move(other));
  CHECK_EQUAL(turns, 0);
  both.get();
  CHECK_EQUAL(turns, 1);
}

template <class E, class F>
void arrives_as(F thrower, const char* what) {
  for (rank_t r = 0; r < rank_count(); ++r) {
    try {
      rpc(r, thrower).get();
      CHECK(!"an exception was thrown");
    } catch (const E& e) {
      CHECK(typeid(e) == typeid(E));
      CHECK_EQUAL(std::string(e.what()), what);
    }
  }
}

void exceptions_arrive_as_themselves() {
  arrives_as<std::runtime_error>([] { throw std::runtime_error("r"); }, "r");
  arrives_as<std::invalid_argument>([] { throw std::invalid_argument("i"); }, "i");
  arrives_as<std::out_of_range>([] { throw std::out_of_range(""); }, "");
  arrives_as<std::length_error>([] { (void)inline_string<3>("four"); },
                                "inline_string: a text of 4 characters does not fit in 3");
  arrives_as<std::bad_alloc>([] { throw std::bad_alloc(); }, std::bad_alloc().what());
  arrives_as<error>([] { throw error("ours"); }, "ours");
  arrives_as<app::refused>([] { throw app::refused("no"); }, "no");
  try {
    rpc(next(), [] { throw std::system_error(ENOENT, std::generic_category(), "opening"); }).get();
    CHECK(!"thrown");
  } catch (const std::system_error& e) {
    CHECK(e.code() == std::errc::no_such_file_or_directory);
    CHECK_EQUAL(std::string(e.what()),
                std::system_error(ENOENT, std::generic_category(), "opening").what());
  }
  try {
    rpc(last(), [] { throw app::code{7, rank_me()}; }).get();
    CHECK(!"thrown");
  } catch (app::code c) {
    CHECK_EQUAL(c.number, 7);
    CHECK_EQUAL(c.where, last());
  }
  try {
    rpc(last(), [] { throw 42; }).get();
    CHECK(!"thrown");
  } catch (int x) {
    CHECK_EQUAL(x, 42);
  }
}

/// Calls f, which throws a T on `thrown_on`: it comes as itself where that is this rank.
template <class T, class F>
void check_stranger(rank_t thrown_on, const char* type_name, const char* what, F f) {
  try {
    f();
    CHECK(!"thrown");
  } catch (const T&) {
    CHECK_EQUAL(thrown_on, rank_me());
  } catch (const remote_exception& e) {
    CHECK(thrown_on != rank_me());
    CHECK_EQUAL(e.type_name(), type_name);
    if (what != nullptr) CHECK_EQUAL(std::string(e.what()), what);
    CHECK_EQUAL(e.rank(), thrown_on);
  }
}

void other_exceptions_say_what_they_were() {
  check_stranger<app::stranger>(last(), "app::stranger", "who",
                                [] { rpc(last(), [] { throw app::stranger("who"); }).get(); });
  check_stranger<app::not_even_standard>(last(), "app::not_even_standard", nullptr, [] {
    rpc(last(), [] { throw app::not_even_standard{1}; }).get();
  });
  // Through a third rank it keeps its first name and rank.
  if (rank_count() > 1) {
    try {
      rpc(next(), [] { rpc(last(), [] { throw app::stranger("who"); }).get(); }).get();
      CHECK(!"thrown");
    } catch (const remote_exception& e) {
      CHECK_EQUAL(e.type_name(), "app::stranger");
      CHECK_EQUAL(e.rank(), last());
    }
  }
}

std::string pounds() {
  std::string text = "x";
  for (int i = 0; i < 50000; ++i) text += "£";
  return text;
}

/// A long text is cut, not lost, and says that it was: `f` calls another rank, which throws it.
template <class F>
void check_cut(std::size_t bytes, F f) {
  try {
    f();
    CHECK(!"thrown");
  } catch (const std::exception& e) {
    const std::string what = e.what();
    CHECK(what.size() <= bytes && what.size() >= bytes - 1);  // no half of a character
    CHECK(what.ends_with("£..."));
    CHECK(pounds().starts_with(what.substr(0, what.size() - 3)));
  }
}

void long_texts_say_that_they_were_cut() {
  if (rank_count() == 1) return;  // they go nowhere
  check_cut(1024, [] { rpc(next(), [] { throw std::runtime_error(pounds()); }).get(); });
  check_cut(640, [] { rpc(next(), [] { throw app::refused(pounds()); }).get(); });
  const std::size_t name = std::strlen(typeid(app::stranger).name());
  check_cut(1024 - name, [] { rpc(next(), [] { throw app::stranger(pounds()); }).get(); });
  try {
    rpc(next(), [] { throw std::system_error(ENOENT, std::generic_category(), pounds()); }).get();
    CHECK(!"thrown");
  } catch (const std::system_error& e) {
    CHECK(std::string(e.what()).find("£...: ") != std::string::npos);
  }
}

int blocks_then_calls_back(rank_t home, int depth) {
  pause_us(50);
  if (depth == 0) return rank_me();
  return rpc(home, blocks_then_calls_back, rank_me(), depth - 1).get() + 1000;
}

rank_t visit_all_ranks() {
  int hops = 0;
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (!migrate_to(r)) return -1;
    if (rank_me() != r) return -2;
    ++hops;
  }
  return hops;
}

void handlers_block_call_back_and_migrate() {
  CHECK_EQUAL(rpc(next(), blocks_then_calls_back, rank_me(), 3).get(), 3000 + rank_me());
  CHECK_EQUAL(rpc(next(), visit_all_ranks).get(), rank_count());
  CHECK_EQUAL(rpc(rank_me(), visit_all_ranks).get(), rank_count());
  // An exception thrown after a migration comes home, too.
  CHECK_THROWS(std::range_error, rpc(next(), [] {
                                   migrate_to(last());
                                   throw std::range_error("there");
                                 }).get());
}

int ping_pong(rank_t other, int depth) {
  if (depth == 0) return 0;
  rank_t me = rank_me();
  return 1 + rpc(other, ping_pong, me, depth - 1).get();
}

void mutual_recursion_200_deep() {
  CHECK_EQUAL(rpc(next(), ping_pong, rank_me(), 200).get(), 200);
  // The innermost of 100 throws; each level passes it on.
  struct deep {
    static int call(rank_t other, int depth) {
      if (depth == 0) throw std::underflow_error("bottom");
      return rpc(other, &deep::call, rank_me(), depth - 1).get();
    }
  };
  CHECK_THROWS(std::underflow_error, rpc(next(), &deep::call, rank_me(), 100).get());
}

long fib(int n) {
  if (n < 2) return n;
  auto a = rpc(static_cast<rank_t>(n * 7 + rank_me()) % rank_count(), fib, n - 1);
  long b = fib(n - 2);
  return a.get() + b;
}

void a_tree_of_calls() { CHECK_EQUAL(rpc(next(), fib, 14).get(), 377); }

void calls_to_this_rank_run_later_and_side_by_side() {
  int order = 0;
  auto at = reinterpret_cast<std::uint64_t>(&order);
  auto set = [](std::uint64_t a) { *reinterpret_cast<int*>(a) = 1; };
  auto f = rpc(rank_me(), set, at);
  CHECK_EQUAL(order, 0);
  f.get();
  CHECK_EQUAL(order, 1);
  // Each waits for the one behind it: they can only finish when all run.
  static int arrived;
  arrived = 0;
  std::vector<future<int>> all;
  for (int i = 0; i < 50; ++i) {
    all.push_back(rpc(rank_me(), [] {
      int mine = arrived++;
      while (arrived < 50) yield();
      return mine;
    }));
  }
  for (int i = 0; i < 50; ++i) CHECK_EQUAL(all[static_cast<std::size_t>(i)].get(), i);
}

// Calls that have arrived, seen by a rank that has not looked for messages since.
std::uint64_t handled_at_yield = 0;

void one_yield_lets_arrived_calls_run() {
  constexpr std::uint64_t calls = 10;
  if (rank_count() == 1 || !check::system_copies()) return;  // What is put goes by a message there.
  if (check::messages_are_delayed()) return;
  auto sent = make<std::uint64_t>(rank_me(), 0u);
  const auto all = all_gather(sent);
  barrier();
  if (rank_me() == 1) {
    for (std::uint64_t i = 0; i < calls; ++i) rpc_ff(0, [] { ++handled_at_yield; });
    flush();  // with SOJOURN_AGGREGATE=on
    std::atomic_thread_fence(std::memory_order_seq_cst);
    store(all[0], 1u);
  }
  if (rank_me() == 0) {
    const auto until = now_ns() + 10'000'000'000;
    while (*const_cast<volatile std::uint64_t*>(sent.local()) == 0 && now_ns() < until) {
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    CHECK_EQUAL(handled_at_yield, 0u);
    yield();
    CHECK_EQUAL(handled_at_yield, calls);
  }
  barrier();
  destroy(sent);
}

void bad_ranks_are_refused() {
  CHECK_THROWS(error, rpc(rank_count(), twice, 1));
  CHECK_THROWS(error, rpc(-1, twice, 1));
  CHECK_THROWS(error, rpc_ff(rank_count(), nothing_much));
  int (*null_function)(int) = nullptr;
  CHECK_THROWS(error, rpc(0, null_function, 1));
  CHECK_EQUAL(rpc(next(), twice, 1).get(), 2);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("functions and lambdas are called by value", functions_and_lambdas);
    check::claim("a future is ready once its result is here", ready_wait_and_valid);
    check::claim("an unread result is dropped", an_unread_result_is_dropped);
    check::claim("results are taken in any order", results_taken_in_any_order);
    check::claim("then goes on with the result on this rank", continuations);
    check::claim("results that cannot travel are destroyed where they are",
                 results_that_cannot_travel);
    check::claim("when_all waits for several", all_of_several);
    check::claim("exceptions arrive as themselves", exceptions_arrive_as_themselves);
    check::claim("other exceptions say what they were", other_exceptions_say_what_they_were);
    check::claim("long texts say that they were cut", long_texts_say_that_they_were_cut);
    check::claim("handlers block, call back and migrate", handlers_block_call_back_and_migrate);
    check::claim("mutual recursion goes 200 deep", mutual_recursion_200_deep);
    check::claim("a tree of calls adds up", a_tree_of_calls);
    check::claim("calls to this rank run later and side by side",
                 calls_to_this_rank_run_later_and_side_by_side);
    check::claim("one yield lets the calls that have arrived from a rank run",
                 one_yield_lets_arrived_calls_run);
    check::claim("bad ranks and functions are refused", bad_ranks_are_refused);
    return check::verdict();
  });
}
