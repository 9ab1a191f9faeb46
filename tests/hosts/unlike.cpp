// SPDX-License-Identifier: Apache-2.0
// Two hosts that run one program and have different libraries: calls of every kind mean the same,
// and stacks stay. The number of ranks of the first host is the first argument.
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include "jobs/check.hpp"
#include "sojourn/sojourn.hpp"

using namespace sojourn;

namespace {

int ranks_of_first_host = 0;

bool are_alike(rank_t a, rank_t b) {
  return (a < ranks_of_first_host) == (b < ranks_of_first_host);
}

struct counter {
  long value = 0;
  long add(long n) {
    if (n < 0) throw std::domain_error("less than nothing");
    return value += n;
  }
  rank_t where() const { return rank_me(); }
};

long fib(int n) {
  if (n < 2) return n;
  auto left = fork(fib, n - 1);
  const long right = fib(n - 2);
  return left.get() + right;
}

void calls_mean_the_same() {
  for (rank_t r = 0; r < rank_count(); ++r) {
    const auto there = make<counter>(r);
    CHECK_EQUAL(rpc(r, [](int a) { return a + rank_me(); }, 5).get(), 5 + r);
    long sum = 0;
    for (const via& how : {via(via::rpc), via(via::migrate), via(via::migrate.all())}) {
      CHECK_EQUAL(there.call<&counter::where>(how), r);
      CHECK_EQUAL(there.call<&counter::add>(how, 3L), sum += 3);
      std::string what;
      try {
        there.call<&counter::add>(how, -1L);
      } catch (const std::domain_error& e) {
        what = e.what();
      }
      CHECK_EQUAL(what, std::string("less than nothing"));
    }
    destroy(there);
  }
}

long visit(global_ptr<counter> at) {
  at.call<&counter::add>(via::migrate, 1L);
  return at.call<&counter::add>(via::migrate, 1L);
}

void frames_stay_on_their_kind_of_host() {
  for (rank_t r = 0; r < rank_count(); ++r) {
    if (are_alike(r, rank_me())) continue;
    const auto there = make<counter>(r);
    const counters before = counters_now();
    CHECK_EQUAL(activate(visit, there), 2L);
    const counters used = counters_now() - before;
    CHECK_EQUAL(used.migrations_refused, 2u);
    CHECK_EQUAL(used.migrations, 0u);
    destroy(there);
  }
}

void goes_to(rank_t to) {
  migrate(self(), to);
  CHECK_EQUAL(rank_me(), to);
}

void threads_stay_on_their_kind_of_host() {
  for (rank_t r = 0; r < rank_count(); ++r) {
    std::string why;
    try {
      spawn(goes_to, r).join();
    } catch (const thread_error& e) {
      CHECK(e.why() == thread_refusal::other_program);
      why = e.what();
    }
    CHECK_EQUAL(why.empty(), are_alike(r, rank_me()));
    CHECK(why.empty() || why.find("the hosts of") != why.npos);
  }
}

void children_and_collectives_work() {
  CHECK_EQUAL(fib(18), 2584L);
  CHECK_EQUAL(reduce(rank_me(), std::plus<>{}), rank_count() * (rank_count() - 1) / 2);
}

}  // namespace

int main(int argc, char** argv) {
  ranks_of_first_host = argc > 1 ? std::atoi(argv[1]) : 0;
  return run(argc, argv, [] {
    check::claim("calls mean the same", calls_mean_the_same);
    barrier();
    check::claim("frames stay on their kind of host", frames_stay_on_their_kind_of_host);
    barrier();
    check::claim("threads stay on their kind of host", threads_stay_on_their_kind_of_host);
    barrier();
    check::claim("children and collectives work", children_and_collectives_work);
    return check::verdict();
  });
}
