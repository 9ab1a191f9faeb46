// SPDX-License-Identifier: Apache-2.0
// Many small calls in few messages.
#include <cstdio>
#include <sojourn/sojourn.hpp>
#include <vector>

using namespace sojourn;

std::vector<long> bins(1000);  // of each rank

void count(unsigned bin) { ++bins[bin]; }

struct histogram {
  long bins[8] = {};
  long add(unsigned bin) { return ++bins[bin % 8]; }
};
template <>
inline constexpr bool sojourn::nonblocking_method<&histogram::add> = true;

struct table_part {
  std::vector<long> cells = std::vector<long>(1 << 16);
  void add(batch<unsigned> at) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (i + 8 < at.size()) __builtin_prefetch(&cells[at[i + 8] % cells.size()], 1);
      ++cells[at[i] % cells.size()];
    }
  }
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto ranks = static_cast<unsigned>(rank_count());
    finish([&] {
      aggregated here;
      for (unsigned i = 0; i < 100'000; ++i) {
        const unsigned value = i * 2654435761u >> 8;
        rpc_ff(static_cast<rank_t>(value % ranks), count, value / ranks % 1000);
      }
    });
    finish([&] {
      aggregated here;
      const rank_t next = (rank_me() + 1) % rank_count();
      for (unsigned bin = 0; bin < 1000; ++bin) rpc_ff(next, nonblocking(count), bin);
    });
    auto small = make<histogram>((rank_me() + 1) % rank_count());
    for (unsigned bin = 0; bin < 100; ++bin) small.call<&histogram::add>(bin);
    finish_all([&] {
      for (unsigned bin = 0; bin < 100'000; ++bin) small.ff<&histogram::add>(bin);
    });
    const auto table = make_sharded<table_part>();
    const rank_t next = (rank_me() + 1) % rank_count();
    finish_all([&] {
      for (unsigned i = 0; i < 100'000; ++i) table.on(next).ff<&table_part::add>(i * 2654435761u);
    });
    finish_all([&] {
      bundle<&table_part::add> adds(table);
      for (unsigned i = 0; i < 100'000; ++i) adds.to(next, i * 2654435761u);
    });
    barrier();  // also the other ranks' calls have been made
    long mine = 0;
    for (long n : bins) mine += n;
    const long all = reduce(mine, [](long a, long b) { return a + b; });
    if (rank_me() == 0) std::printf("%ld values a rank\n", all / rank_count());
  });
}
