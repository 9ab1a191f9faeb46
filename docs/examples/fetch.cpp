// SPDX-License-Identifier: Apache-2.0
// A histogram that each rank fills for a while: docs/policies.md.
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdio>
#include <functional>

using namespace sojourn;

class histogram {
 public:
  void count(int value) { ++counts_[static_cast<std::size_t>(value) % counts_.size()]; }
  long of(int value) const { return counts_[static_cast<std::size_t>(value)]; }

 private:
  std::array<long, 16> counts_{};
};

// Each rank in turn counts a thousand values.
void fill(global_ptr<histogram> all, via how) {
  for (rank_t turn = 0; turn < rank_count(); ++turn) {
    if (rank_me() == turn) {
      for (int i = 0; i < 1000; ++i) all.call<&histogram::count>(how, i);
    }
    barrier();
  }
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    for (via how : {via::rpc, via::fetch}) {
      global_ptr<histogram> all;
      if (rank_me() == 0) all = make<histogram>(0);
      all = broadcast(all, 0);
      const counters before = counters_now();
      barrier();  // nobody calls before all have looked
      fill(all, how);
      const counters used = reduce(counters_now() - before, std::plus<>{});
      if (rank_me() == 0) {
        std::printf("%s: %ld values are 3, and the object is on rank %d\n",
                    how == via::rpc ? "rpc" : "fetch", all.call<&histogram::of>(3), all.where());
        std::printf("  %llu calls sent, %llu messages about the object\n",
                    static_cast<unsigned long long>(used.requests_sent),
                    static_cast<unsigned long long>(used.copy_messages));
        destroy(all);
      }
      barrier();
    }
    return 0;
  });
}
