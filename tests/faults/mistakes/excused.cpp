// SPDX-License-Identifier: Apache-2.0
// Takes memory of its rank along and does not use it elsewhere. `excused` says so, `not` does not.
#include <cstdio>
#include <cstring>
#include <vector>

#include <sojourn/sojourn.hpp>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

namespace tree {

long walk(global_ptr<cell> there, global_ptr<cell> here) {
  std::vector<long> factors{3, 5};
  long value = there.call<&cell::get>(via::migrate);
  value += here.call<&cell::get>(via::migrate);
  return value * factors[0];
}

long walk_excused(global_ptr<cell> there, global_ptr<cell> here) {
  scan_allow why("the factors are read and freed on the rank that made them");
  std::vector<long> factors{3, 5};
  long value = there.call<&cell::get>(via::migrate);
  value += here.call<&cell::get>(via::migrate);
  return value * factors[0];
}

}  // namespace tree

int main(int argc, char** argv) {
  bool excused = argc > 1 && std::strcmp(argv[1], "excused") == 0;
  return run(argc, argv, [excused] {
    if (rank_me() != 0) return;
    auto there = make<cell>(rank_count() - 1);
    auto here = make<cell>(0);
    std::printf("%ld\n", activate(excused ? tree::walk_excused : tree::walk, there, here));
  });
}
