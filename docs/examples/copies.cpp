// SPDX-License-Identifier: Apache-2.0
// A table of prices that all ranks read and one changes: docs/policies.md.
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdio>
#include <functional>

using namespace sojourn;

class prices {
 public:
  long of(int item) const { return cents_[static_cast<std::size_t>(item)]; }
  void set(int item, long cents) { cents_[static_cast<std::size_t>(item)] = cents; }

 private:
  std::array<long, 8> cents_{};
};

// A thousand reads by each rank, around one change.
long total(global_ptr<prices> table, via how) {
  long sum = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i == 500) {
      barrier();
      if (rank_me() == 0) table.call<&prices::set>(how, 3, 250L);
      barrier();
    }
    sum += table.call<&prices::of>(how, 3);
  }
  return sum;
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    global_ptr<prices> table;
    if (rank_me() == 0) {
      table = make<prices>(rank_count() - 1);
      table.call<&prices::set>(3, 100L);
    }
    table = broadcast(table, 0);
    for (via how : {via::rpc, via::cache}) {
      barrier();
      const counters before = counters_now();
      barrier();  // nobody reads before all have looked
      const long sum = reduce(total(table, how), std::plus<>{});
      const counters used = reduce(counters_now() - before, std::plus<>{});
      if (rank_me() == 0) {
        std::printf("%s: the sum is %ld\n", how == via::rpc ? "rpc" : "cache", sum);
        std::printf("  %llu calls sent, %llu other messages about copies\n",
                    static_cast<unsigned long long>(used.requests_sent),
                    static_cast<unsigned long long>(used.copy_messages));
        table.call<&prices::set>(3, 100L);
      }
    }
    barrier();
    if (rank_me() == 0) destroy(table);
    barrier();
    return 0;
  });
}
