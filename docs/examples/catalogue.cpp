// SPDX-License-Identifier: Apache-2.0
// A catalogue that owns memory, which all ranks read and one changes: docs/policies.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>

using namespace sojourn;

class catalogue {
 public:
  void enter(std::string name, long price) { prices_[std::move(name)] = price; }
  long price_of(const std::string& name) const { return prices_.at(name); }

  template <class Archive>
  void serialize(Archive& ar) {
    ar(prices_);
  }

 private:
  std::map<std::string, long> prices_;
};

// A thousand reads by each rank, around one change.
long total(global_ptr<catalogue> all, via how) {
  long sum = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i == 500) {
      barrier();
      if (rank_me() == 0) all.call<&catalogue::enter>(how, "apple", 250L);
      barrier();
    }
    sum += all.call<&catalogue::price_of>(how, "apple");
  }
  return sum;
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    global_ptr<catalogue> all;
    if (rank_me() == 0) all = make<catalogue>(rank_count() - 1);
    all = broadcast(all, 0);
    for (via how : {via::rpc, via::cache}) {
      barrier();
      if (rank_me() == 0) all.call<&catalogue::enter>("apple", 100L);
      barrier();
      const counters before = counters_now();
      barrier();  // nobody reads before all have looked
      const long sum = reduce(total(all, how), std::plus<>{});
      const counters used = reduce(counters_now() - before, std::plus<>{});
      if (rank_me() == 0) {
        std::printf("%s: the sum is %ld\n", how == via::rpc ? "rpc" : "cache", sum);
        std::printf("  %llu calls sent, %llu other messages about copies\n",
                    static_cast<unsigned long long>(used.requests_sent),
                    static_cast<unsigned long long>(used.copy_messages));
      }
    }
    barrier();
    if (rank_me() == 0) destroy(all);
    barrier();
    return 0;
  });
}
