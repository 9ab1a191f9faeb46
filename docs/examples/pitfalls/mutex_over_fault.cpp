// SPDX-License-Identifier: Apache-2.0
// A mutex that is held while the fiber waits for a page of shared memory.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
#include <mutex>
using namespace sojourn;

std::mutex guard;
long sum;

// bad
[[gnu::noinline]] long add_bad(const long* values) {
  std::lock_guard lock(guard);
  sum += values[0];  // the page may be elsewhere: then other fibers run
  return sum;
}

// good
[[gnu::noinline]] long add_good(const long* values) {
  const long value = values[0];
  std::lock_guard lock(guard);
  return sum += value;
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    shared::pointer<long> values;
    if (rank_me() == rank_count() - 1) {
      values = shared::alloc<long>(1);
      *values = 42;
    }
    values = broadcast(values, rank_count() - 1);
    if (rank_me() == 0) std::printf("%ld\n", bad ? add_bad(values) : add_good(values));
  });
}
