// SPDX-License-Identifier: Apache-2.0
// An access in the initialisation of a static variable, which every rank has its own of.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

// bad
long cached_bad(global_ptr<cell> c) {
  static long value = c.call<&cell::get>(via::migrate);
  return value;
}

// good
long cached_good(global_ptr<cell> c) { return c.call<&cell::get>(via::migrate); }

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto c = make<cell>(rank_count() - 1);
    std::printf("%ld\n", activate(bad ? cached_bad : cached_good, c));
  });
}
