// SPDX-License-Identifier: Apache-2.0
// A method that says on which value categories it may be called cannot be called from afar.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct object {
  int get() & { return 1; }
  int get_any() { return 1; }
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    make<object>(0).call<&object::get>();
#else
    make<object>(0).call<&object::get_any>();
#endif
  });
}
