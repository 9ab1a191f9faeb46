// SPDX-License-Identifier: Apache-2.0
// Three uses of objects of another rank that choose by themselves how they are made:
// docs/automatic.md.
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdio>
#include <functional>

using namespace sojourn;

struct prices {
  std::array<long, 8> cents{};

  long of(int item) const { return cents[static_cast<std::size_t>(item)]; }
};

class account {
 public:
  long add(long cents) { return cents_ += cents; }

 private:
  long cents_ = 0;
};

// Reads a table that nobody changes.
long total(global_ptr<prices> table) {
  long sum = 0;
  for (int i = 0; i < 1000; ++i) sum += table.call<&prices::of>(i % 8);
  return sum;
}

// Changes an account that nobody else uses now.
long save(global_ptr<account> savings) {
  long balance = 0;
  for (int i = 0; i < 1000; ++i) balance = savings.call<&account::add>(via::automatic, 1L);
  return balance;
}

// Eight changes of an account that all use, by one activation.
long pay_in(global_ptr<account> shared) {
  long balance = 0;
  for (int i = 0; i < 8; ++i) balance = shared.call<&account::add>(via::automatic, 1L);
  return balance;
}
long pay_in_often(global_ptr<account> shared) {
  long balance = 0;
  for (int i = 0; i < 125; ++i) balance = activate(pay_in, shared);
  return balance;
}

template <class T>
void count(const char* what, long (*use)(global_ptr<T>), global_ptr<T> object) {
  const counters before = counters_now();
  const long result = use(object);
  const counters used = counters_now() - before;
  std::printf("%s: %ld\n  %llu calls sent\n", what, result,
              static_cast<unsigned long long>(used.requests_sent));
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() == 0) {
      const rank_t there = rank_count() - 1;
      count("the table", total, make<prices>(there));
      count("the savings", save, make<account>(there));
      const global_ptr<account> shared = make<account>(there);
      fix(shared);
      count("the account", pay_in_often, shared);
    }
    return 0;
  });
}
