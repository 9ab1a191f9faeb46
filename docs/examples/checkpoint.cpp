// SPDX-License-Identifier: Apache-2.0
// A job that goes on where it was ended: docs/checkpoint.md.
#include <sojourn/sojourn.hpp>

#include <chrono>
#include <cstdio>
#include <functional>

using namespace sojourn;
using namespace std::chrono_literals;

// Takes its time, on all ranks in turn.
void sum_up(global_ptr<long> result, long from, long to) {
  long sum = 0;
  for (long i = from; i < to; ++i) {
    sum += i;
    if (i % 100 == 0) migrate(self(), (rank_me() + 1) % rank_count());
    sleep_for(100us);
  }
  store(result, sum);
}

// What the main of each rank needs to find its thread again.
struct work {
  thread mine;
  global_ptr<long> result;
};

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "sums.state";
  return run(argc, argv, [path] {
    work w;
    if (restored()) {
      w = restored_root<work>();
    } else {
      w.result = make<long>(rank_me(), 0L);
      w.mine = spawn(sum_up, w.result, 1000L * rank_me(), 1000L * rank_me() + 1000);
    }
    barrier();  // in a restored job the threads go on here
    while (reduce(w.mine.finished() ? 0 : 1, std::plus<>()) > 0) {
      sleep_for(50ms);
      checkpoint(path, w);
    }
    w.mine.join();
    long sum = reduce(load(w.result), std::plus<>());
    if (rank_me() == 0) std::printf("%ld\n", sum);
  });
}
