// SPDX-License-Identifier: Apache-2.0
// An access in a catch block: the exception belongs to its rank, so nothing migrates.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
#include <stdexcept>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

void fail() { throw std::runtime_error("no entry"); }

// bad
long recover_bad(global_ptr<cell> c) {
  try {
    fail();
  } catch (const std::runtime_error&) {
    return c.call<&cell::get>(via::migrate);
  }
  return 0;
}

// good
long recover_good(global_ptr<cell> c) {
  bool failed = false;
  try {
    fail();
  } catch (const std::runtime_error&) {
    failed = true;
  }
  return failed ? c.call<&cell::get>(via::migrate) : 0;
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto c = make<cell>(rank_count() - 1);
    std::printf("%ld\n", activate(bad ? recover_bad : recover_good, c));
  });
}
