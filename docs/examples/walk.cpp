// SPDX-License-Identifier: Apache-2.0
// A walk along a list whose nodes lie on all ranks, and what it costs: docs/migration.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <functional>

using namespace sojourn;

class node {
 public:
  node(long value, global_ptr<node> next) : value_(value), next_(next) {}
  long value() const { return value_; }
  global_ptr<node> next() const { return next_; }

 private:
  long value_;
  global_ptr<node> next_;
};

long sum(global_ptr<node> at, via how) {
  long total = 0;
  while (at) {
    total += at.call<&node::value>(how);
    at = at.call<&node::next>(how);
  }
  return total;
}

// What all ranks together count while rank 0 walks.
counters cost_of(global_ptr<node> list, via how) {
  barrier();
  counters before = counters_now();
  if (rank_me() == 0) {
    long total = activate(sum, list, how);
    std::printf("%-8s sum %ld, ", how == via::rpc ? "rpc:" : "migrate:", total);
  }
  barrier();
  return reduce(counters_now() - before, std::plus<>{});
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    // Ten nodes: the first on rank 1, the next on rank 2, and so on; the last on rank 0.
    global_ptr<node> list;
    if (rank_me() == 0) {
      for (int i = 10; i >= 1; --i) {
        list = make<node>(i == 10 ? 0 : i % rank_count(), static_cast<long>(i), list);
      }
    }
    for (via how : {via::rpc, via::migrate}) {
      counters c = cost_of(list, how);
      if (rank_me() == 0) {
        std::printf("%lu messages (%lu requests, %lu replies, %lu migrations)\n", c.messages(),
                    c.requests_sent, c.replies_sent, c.migrations);
      }
    }
  });
}
