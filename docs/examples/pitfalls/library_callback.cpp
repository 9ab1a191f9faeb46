// SPDX-License-Identifier: Apache-2.0
// A function that a library calls back, and that migrates.
#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

// bad
int compare_bad(const void* a, const void* b) {
  auto value = [](const void* p) {
    return static_cast<const global_ptr<cell>*>(p)->call<&cell::get>(via::migrate);
  };
  return static_cast<int>(value(a) - value(b));
}
long least_bad(global_ptr<cell> c, global_ptr<cell> d) {
  global_ptr<cell> cells[] = {c, d};
  std::qsort(cells, 2, sizeof cells[0], compare_bad);  // in the C library: elsewhere there
  return cells[0].call<&cell::get>(via::migrate);
}

// good
long least_good(global_ptr<cell> c, global_ptr<cell> d) {
  return std::min(c.call<&cell::get>(via::migrate), d.call<&cell::get>(via::migrate));
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto c = make<cell>(rank_count() - 1), d = make<cell>(rank_count() - 1);
    std::printf("%ld\n", activate(bad ? least_bad : least_good, c, d));
  });
}
