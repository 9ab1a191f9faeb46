// SPDX-License-Identifier: Apache-2.0
// Is it all done? docs/finish.md.
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

// The distance of each place of a circle from place 0. Rank r has every rank_count()-th place.
constexpr long places = 1000;
std::vector<long> distances;  // of each rank
rank_t owner(long place) { return static_cast<rank_t>(place % rank_count()); }
void reach(long place, long distance) {
  long& known = distances[static_cast<std::size_t>(place / rank_count())];
  if (distance >= known) return;
  known = distance;
  for (const long next : {(place + 1) % places, (place + places - 1) % places})
    rpc_ff(owner(next), reach, next, distance + 1);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    // Every rank sends, and every rank is sent to.
    finish_all([] {
      for (long i = 0; i < 100; ++i) rpc_ff(static_cast<rank_t>(i % rank_count()), add, i % 10);
    });
    long here = 0;  // nobody will change this rank's bins any more
    for (const long n : bins) here += n;
    const long all = reduce(here, std::plus<>{});
    if (rank_me() == 0) std::printf("%ld values from each rank\n", all / rank_count());

    // One rank begins; the others help, because they answer while they wait at the barrier.
    if (rank_me() == 0) finish([] { rpc_ff(rank_me(), visit, 9); });
    barrier();
    const long visits = reduce(visited, std::plus<>{});
    if (rank_me() == 0) std::printf("%ld visits\n", visits);

    // One rank begins, and calls call on until nothing becomes shorter.
    distances.assign(static_cast<std::size_t>(places / rank_count() + 1), places);
    barrier();
    finish_all([] {
      if (rank_me() == owner(0)) reach(0, 0);
    });
    long farthest = 0;
    for (const long d : distances) farthest = d < places && d > farthest ? d : farthest;
    farthest = reduce(farthest, [](long a, long b) { return a > b ? a : b; });
    if (rank_me() == 0) std::printf("%ld places are at most %ld away\n", places, farthest);

    // At most four trees are being visited at a time.
    visited = 0;
    barrier();
    if (rank_me() == 0) {
      finish({.in_flight = 4}, [] {
        for (int tree = 0; tree < 100; ++tree) rpc_ff(tree % rank_count(), visit, 3);
      });
    }
    barrier();
    const long in_trees = reduce(visited, std::plus<>{});
    if (rank_me() == 0) std::printf("%ld visits of trees\n", in_trees);

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
