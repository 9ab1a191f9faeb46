// SPDX-License-Identifier: Apache-2.0
// The name of several methods.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct cell {
  long value = 1;
  long add(long n) { return value += n; }
  long add(const cell& other) { return value += other.value; }
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    auto p = make<cell>(0);
#ifdef SOJOURN_EXPECT_ERROR
    p.call<&cell::add>(2L);
#else
    p.call<static_cast<long (cell::*)(long)>(&cell::add)>(2L);
#endif
  });
}
