// SPDX-License-Identifier: Apache-2.0
// A frame that migrates with a plain pointer to an object that was destroyed.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

// bad
long sum_bad(global_ptr<cell> own, global_ptr<cell> other) {
  cell* mine = own.local();
  destroy(own);
  long value = other.call<&cell::get>(via::migrate);
  return value + mine->value;  // another object's, or nothing's
}

// good
long sum_good(global_ptr<cell> own, global_ptr<cell> other) {
  long value = own.local()->value;
  destroy(own);
  return value + other.call<&cell::get>(via::migrate);
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto own = make<cell>(0);
    auto other = make<cell>(rank_count() - 1);
    std::printf("%ld\n", activate(bad ? sum_bad : sum_good, own, other));
  });
}
