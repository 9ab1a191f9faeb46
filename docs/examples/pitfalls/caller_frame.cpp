// SPDX-License-Identifier: Apache-2.0
// An activation that keeps a pointer to a local variable of its caller.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

long* total;  // each rank has its own

// bad
long add_bad(global_ptr<cell> c) {
  long* sum = total;  // of the caller, which stays
  long value = c.call<&cell::get>(via::migrate);
  *sum += value;
  return value;
}

// good
long add_good(global_ptr<cell> c) {
  return c.call<&cell::get>(via::migrate);  // the caller adds
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto c = make<cell>(rank_count() - 1);
    long sum = 0;
    total = &sum;
    if (bad) {
      activate(add_bad, c);
    } else {
      sum += activate(add_good, c);
    }
    std::printf("%ld\n", sum);
  });
}
