// SPDX-License-Identifier: Apache-2.0
// Threads of all ranks take numbered pieces of work from an atomic, and one tells all others what
// it is about by a flag: docs/shared_memory.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <functional>

using namespace sojourn;

struct work {
  shared::flag is_described;
  long first, last;           // stored before the flag is set
  shared::atomic<long> next;  // how many pieces are taken
};

long sum_of_cubes(shared::pointer<work> w) {
  long sum = 0;
  w->is_described.wait();
  for (long k = w->first + w->next.fetch_add(1); k <= w->last; k = w->first + w->next.fetch_add(1))
    sum += k * k * k;
  return shared::reduce_all(sum, std::plus<>{});  // of all threads of all ranks
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    shared::pointer<work> w;
    if (rank_me() == 0) w = shared::alloc<work>();
    w = broadcast(w);
    shared::run_threads(2, [=](int number) {
      if (number == shared::threads() - 1) {
        w->first = 1;
        w->last = 200;
        w->is_described.set();
      }
      const long sum = sum_of_cubes(w);
      if (number == 0) std::printf("%ld\n", sum);
    });
  });
}
