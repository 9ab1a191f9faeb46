// SPDX-License-Identifier: Apache-2.0
// Waiting for all that was begun: docs/finish.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <vector>

using namespace sojourn;

std::vector<long> bins(10);  // of each rank

void add(long bin) { ++bins[static_cast<std::size_t>(bin)]; }

// Each call makes two more, on other ranks, until it has gone deep enough.
long visited = 0;  // of each rank
void visit(int depth) {
  ++visited;
  if (depth == 0) return;
  for (int child = 1; child <= 2; ++child)
    rpc_ff((rank_me() + child) % rank_count(), visit, depth - 1);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    // Every rank sends, and every rank is sent to.
    finish([] {
      for (long i = 0; i < 100; ++i) rpc_ff(static_cast<rank_t>(i % rank_count()), add, i % 10);
    });
    barrier();  // the other ranks' finish has ended, too: nobody will change this rank's bins
    long here = 0;
    for (const long n : bins) here += n;
    const long all = reduce(here, std::plus<>{});
    if (rank_me() == 0) std::printf("%ld values from each rank\n", all / rank_count());

    // One rank begins; the others help, because they answer while they wait at the barrier.
    if (rank_me() == 0) finish([] { rpc_ff(rank_me(), visit, 9); });
    barrier();
    const long visits = reduce(visited, std::plus<>{});
    if (rank_me() == 0) std::printf("%ld visits\n", visits);

    // What a one-way call throws comes out here.
    if (rank_me() == 0) {
      try {
        finish([] { rpc_ff(rank_count() - 1, [] { throw std::domain_error("no such bin"); }); });
      } catch (const std::domain_error& e) {
        std::printf("caught: %s\n", e.what());
      }
    }
  });
}
