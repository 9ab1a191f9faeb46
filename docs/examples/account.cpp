// SPDX-License-Identifier: Apache-2.0
// Objects, remote calls and an activation: docs/getting_started.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace sojourn;

class account {
 public:
  explicit account(long cents) : cents_(cents) {}
  long balance() const { return cents_; }
  long deposit(long cents) { return cents_ += cents; }
  long withdraw(long cents) {
    if (cents > cents_) throw std::domain_error("not enough money");
    return cents_ -= cents;
  }

 private:
  long cents_;
};

long deposit_three_times(global_ptr<account> a, long cents, via how) {
  a.call<&account::deposit>(how, cents);
  a.call<&account::deposit>(how, cents);
  return a.call<&account::deposit>(how, cents);
}

void make_and_call() {
  auto a = make<account>(rank_count() - 1, 500L);  // on the last rank
  a.call<&account::deposit>(via::rpc, 250L);
  std::printf("balance %ld\n", a.call<&account::balance>(via::rpc));
  try {
    a.call<&account::withdraw>(via::rpc, 10'000L);
  } catch (const std::domain_error& e) {
    std::printf("refused: %s\n", e.what());
  }
  destroy(a);
}

void call_several_at_once() {
  std::vector<future<long>> answers;
  for (rank_t r = 0; r < rank_count(); ++r) {
    answers.push_back(rpc(r, [](long x) { return x * rank_me(); }, 10L));
  }
  long sum = 0;
  for (long answer : when_all(std::move(answers)).get()) sum += answer;
  std::printf("answers add up to %ld\n", sum);
}

void compare() {
  auto a = make<account>(rank_count() - 1, 0L);
  for (via how : {via::rpc, via::migrate}) {
    counters before = counters_now();
    long balance = activate(deposit_three_times, a, 100L, how);
    counters spent = counters_now() - before;
    std::printf("%s: balance %ld; sent here: %lu requests, %lu migrations\n",
                how == via::rpc ? "rpc" : "migrate", balance, spent.requests_sent,
                spent.migrations);
  }
  destroy(a);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    make_and_call();
    call_several_at_once();
    compare();
  });
}
