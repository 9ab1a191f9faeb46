// SPDX-License-Identifier: Apache-2.0
// A method of an object that may lie on another rank.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct cell {
  long value = 1;
  long get() const { return value; }
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    auto p = make<cell>(0);
#ifdef SOJOURN_EXPECT_ERROR
    return static_cast<int>(p->get());
#else
    return static_cast<int>(p.call<&cell::get>());
#endif
  });
}
