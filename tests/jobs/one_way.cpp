// SPDX-License-Identifier: Apache-2.0
// One-way calls of methods: each is made once, on the object wherever that is, in order, bundled or
// not.
#include <array>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

class ledger {
 public:
  void add(long n) {
    sum_ += n;
    in_order_ = in_order_ && n > last_;
    last_ = n;
  }
  long add_and_tell(long n) { return sum_ += n; }
  void add_later(long n) {
    yield();
    sum_ += n;
  }
  void add_lengths(const std::string& text, const std::vector<int>& numbers) {
    sum_ += static_cast<long>(text.size() + numbers.size());
  }
  void add_many(std::array<long, 100> numbers) {
    for (const long n : numbers) sum_ += n;
  }
  void refuse(long n) { throw std::domain_error("no entry " + std::to_string(n)); }
  void pass_on(global_ptr<ledger> other, long n) {
    ++sum_;
    if (n > 0) other.ff<&ledger::pass_on>(global_ptr<ledger>(this), n - 1);
  }
  void see() const { ++seen; }

  long sum() const { return sum_; }
  bool in_order() const { return in_order_; }

  static inline long seen = 0;

 private:
  long sum_ = 0;
  long last_ = 0;
  bool in_order_ = true;
};

struct account : monitor {
  long cents = 0;
  void deposit(long n) {
    const long before = cents;
    yield();
    cents = before + n;
  }
  long balance() const { return cents; }
};

/// Calls `body` with and without bundles, in a finish of all ranks.
void both_ways(const std::function<void()>& body) {
  finish([&] { body(); });
  barrier();
  finish_all([&] { body(); });
}

void each_call_is_made_once_and_in_order() {
  constexpr long many = 2000;
  for (const rank_t where : {next(), rank_me()}) {
    const global_ptr<ledger> alone = make<ledger>(where);
    const global_ptr<ledger> bundled = make<ledger>(where);
    finish([&] {
      for (long i = 1; i <= many; ++i) alone.ff<&ledger::add>(i);
    });
    finish_all([&] {
      for (long i = 1; i <= many; ++i) bundled.ff<&ledger::add>(i);
    });
    for (const global_ptr<ledger> p : {alone, bundled}) {
      CHECK_EQUAL(p.call<&ledger::sum>(via::rpc), many * (many + 1) / 2);
      CHECK(p.call<&ledger::in_order>(via::rpc));
    }
    barrier();
  }
}

void all_ranks_may_call_one_object() {
  const global_ptr<ledger> one = broadcast(make<ledger>(rank_count() - 1), 0);
  both_ways([&] {
    for (int i = 0; i < 500; ++i) one.ff<&ledger::add_and_tell>(2L);
  });
  barrier();
  CHECK_EQUAL(one.call<&ledger::sum>(via::rpc), 2L * 2 * 500 * rank_count());
  barrier();
}

void methods_may_wait_and_take_turns() {
  const global_ptr<ledger> l = make<ledger>(next());
  const global_ptr<account> a = make<account>(next());
  both_ways([&] {
    for (int i = 0; i < 100; ++i) {
      l.ff<&ledger::add_later>(1L);
      a.ff<&account::deposit>(1L);
    }
  });
  CHECK_EQUAL(l.call<&ledger::sum>(via::rpc), 200);
  CHECK_EQUAL(a.call<&account::balance>(via::rpc), 200);
}

void arguments_may_own_memory_or_be_long() {
  const global_ptr<ledger> l = make<ledger>(next());
  std::array<long, 100> ones{};
  ones.fill(1);
  both_ways([&] {
    for (int i = 0; i < 20; ++i) {
      l.ff<&ledger::add_lengths>("four", std::vector<int>(6));
      l.ff<&ledger::add_many>(ones);
    }
  });
  CHECK_EQUAL(l.call<&ledger::sum>(via::rpc), 2 * 20 * (10 + 100));
}

void a_method_may_call_on() {
  const global_ptr<ledger> here = make<ledger>(rank_me());
  const global_ptr<ledger> there = make<ledger>(next());
  both_ways([&] { there.ff<&ledger::pass_on>(here, 999L); });
  CHECK_EQUAL(there.call<&ledger::sum>(via::rpc), 1000);
  CHECK_EQUAL(here.call<&ledger::sum>(via::rpc), 1000);
  // Const ones, through a pointer to const.
  both_ways([&] { global_ptr<const ledger>(there).ff<&ledger::see>(); });
  barrier();
  CHECK_EQUAL(reduce(ledger::seen, std::plus<>{}), 2L * rank_count());
}

/// What `body` throws.
template <class Body>
std::string thrown_by(Body body) {
  try {
    body();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}
void exceptions_go_to_the_finish() {
  const global_ptr<ledger> l = make<ledger>(next());
  CHECK_EQUAL(thrown_by([&] { finish([&] { l.ff<&ledger::refuse>(7L); }); }), "no entry 7");
  CHECK_EQUAL(thrown_by([&] {
                finish_all([&] {
                  l.ff<&ledger::add>(1L);
                  l.ff<&ledger::refuse>(8L);
                  l.ff<&ledger::add>(2L);
                });
              }),
              "no entry 8");
  CHECK_EQUAL(l.call<&ledger::sum>(via::rpc), 3);
  CHECK_THROWS(error, global_ptr<ledger>().ff<&ledger::add>(1L));
  barrier();
}

void an_object_that_has_moved_is_found() {
  const global_ptr<ledger> l = make<ledger>(rank_me());
  const std::vector<global_ptr<ledger>> all = all_gather(l);
  const global_ptr<ledger> theirs = all[static_cast<std::size_t>(next())];
  for (int round = 1; round <= 20; ++round) {
    if (round % 3 == 0) theirs.call<&ledger::add_and_tell>(via::fetch, 0L);
    barrier();
    finish_all([&] {
      for (const global_ptr<ledger> p : all) {
        for (int i = 0; i < 10; ++i) p.ff<&ledger::add_and_tell>(1L);
        if (round % 5 == 0) (void)p.call<&ledger::sum>(via::cache);
      }
    });
    CHECK_EQUAL(l.call<&ledger::sum>(via::cache), 10L * rank_count() * round);
    barrier();
  }
}

/// In a bundle the object stands once in front of its calls.
void a_call_takes_the_bytes_of_its_arguments() {
  if (rank_count() == 1 || detail::checked()) return;
  const global_ptr<ledger> l = make<ledger>(next());
  constexpr long many = 10'000;
  barrier();
  const counters before = counters_now();
  finish([&] {
    const aggregated here;
    for (long i = 1; i <= many; ++i) l.ff<&ledger::add>(i);
  });
  const counters c = counters_now() - before;
  CHECK_EQUAL(c.calls_bundled, static_cast<std::uint64_t>(many));
  CHECK(c.request_bytes < static_cast<std::uint64_t>(many) * 9);
  barrier();
  CHECK(l.call<&ledger::in_order>(via::rpc));
}

void calls_of_several_objects_take_turns_in_a_bundle() {
  std::vector<global_ptr<ledger>> some;
  for (int i = 0; i < 7; ++i) some.push_back(make<ledger>(next()));
  finish_all([&] {
    for (int i = 0; i < 700; ++i) {
      some[static_cast<std::size_t>(i % 7)].ff<&ledger::add_and_tell>(1L);
      if (i % 3 == 0) rpc_ff(next(), [] {});
    }
  });
  for (const global_ptr<ledger> p : some) CHECK_EQUAL(p.call<&ledger::sum>(via::rpc), 100);
}

long own_calls = 0;  // of each rank

/// A rank's calls to itself wait in a queue, of which it runs what is there when it is full.
void calls_to_oneself_make_no_fibers() {
  constexpr long many = 200'000;
  own_calls = 0;
  const counters before = counters_now();
  finish([&] {
    for (long i = 0; i < many; ++i) rpc_ff(rank_me(), [](long n) { own_calls += n; }, 1L);
  });
  CHECK_EQUAL(own_calls, many);
  CHECK_EQUAL((counters_now() - before).fibers_made, 0u);
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("each call is made once, and in order", each_call_is_made_once_and_in_order);
    check::claim("all ranks may call one object", all_ranks_may_call_one_object);
    check::claim("methods may wait, and take turns", methods_may_wait_and_take_turns);
    check::claim("arguments may own memory or be long", arguments_may_own_memory_or_be_long);
    check::claim("a method may call on", a_method_may_call_on);
    check::claim("exceptions go to the finish", exceptions_go_to_the_finish);
    check::claim("an object that has moved is found", an_object_that_has_moved_is_found);
    check::claim("a call takes the bytes of its arguments",
                 a_call_takes_the_bytes_of_its_arguments);
    check::claim("calls of several objects take turns in a bundle",
                 calls_of_several_objects_take_turns_in_a_bundle);
    check::claim("calls to oneself make no fibers", calls_to_oneself_make_no_fibers);
    return check::verdict();
  });
}
