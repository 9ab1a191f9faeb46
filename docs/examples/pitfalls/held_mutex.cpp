// SPDX-License-Identifier: Apache-2.0
// A mutex that is held while the fiber waits.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
#include <mutex>
using namespace sojourn;

long answer() { return 42; }
std::mutex guard;
long sum;

// bad
[[gnu::noinline]] long add_bad() {
  std::lock_guard lock(guard);
  sum += rpc(rank_count() - 1, answer).get();  // the next fiber that locks it stops this rank
  return sum;
}

// good
[[gnu::noinline]] long add_good() {
  long value = rpc(rank_count() - 1, answer).get();
  std::lock_guard lock(guard);
  return sum += value;
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() == 0) std::printf("%ld\n", bad ? add_bad() : add_good());
  });
}
