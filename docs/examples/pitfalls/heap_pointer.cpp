// SPDX-License-Identifier: Apache-2.0
// A frame that migrates with memory of its rank.
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <vector>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

// bad
long scaled_bad(global_ptr<cell> c) {
  std::vector<long> factors{2, 3, 5};  // its elements are malloc'd here
  long value = c.call<&cell::get>(via::migrate);
  return value * factors[2];  // and read there
}

// good
long scaled_good(global_ptr<cell> c) {
  std::array<long, 3> factors{2, 3, 5};  // in the frame: it comes along
  long value = c.call<&cell::get>(via::migrate);
  return value * factors[2];
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto c = make<cell>(rank_count() - 1);
    std::printf("%ld\n", activate(bad ? scaled_bad : scaled_good, c));
  });
}
