// SPDX-License-Identifier: Apache-2.0
// Load balance: docs/load_balance.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <functional>
#include <vector>

using namespace sojourn;

long done_here;  // of this rank

// How long a part takes is not known before: the chain of its number's Collatz sequence.
void examine(long first, long last) {
  // A large part becomes two threads, which whoever has time may run.
  if (last - first > 1000) {
    long middle = (first + last) / 2;
    spawn(examine, first, middle).detach();
    spawn(examine, middle, last).detach();
    return;
  }
  long steps = 0;
  for (long n = first; n < last; ++n) {
    for (long x = n; x > 1; ++steps) x = x % 2 == 0 ? x / 2 : 3 * x + 1;
  }
  done_here += steps;  // of the rank that it has come to
}

struct table {
  std::vector<long> rows;
  void add(long row) { rows.push_back(row); }
  long size() const { return static_cast<long>(rows.size()); }
};

void fill(global_ptr<table> rows, long first) {
  for (long i = first; i < first + 100; ++i) {
    rows.call<&table::add>(i);
    yield();  // here others get their turn, and it may be handed over
  }
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    balance(balance_policy::steal);
    if (rank_me() == 0) finish([] { spawn(examine, 1L, 100'000L).detach(); });
    barrier();
    long steps = reduce(done_here, std::plus<>{});
    counters all = reduce(counters_now(), std::plus<>{});
    if (rank_me() == 0) {
      std::printf("%ld steps; handed over: %s\n", steps,
                  rank_count() == 1 || all.threads_handed_over > 0 ? "as it should be" : "nothing");
    }

    if (rank_me() == 0) {
      // Calls on the table are local where its owner is, so that is where they run.
      auto rows = make<table>(rank_count() - 1);
      thread_options at_table{.affinity = rows};
      thread first = spawn(at_table, fill, rows, 0L);
      thread second = spawn(at_table, fill, rows, 100L);
      first.join();
      second.join();
      std::printf("%ld rows\n", rows.call<&table::size>());
      destroy(rows);
    }
    return steps == 10'753'712 ? 0 : 1;
  });
}
