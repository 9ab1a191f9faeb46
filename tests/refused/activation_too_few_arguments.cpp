// SPDX-License-Identifier: Apache-2.0
// An activation has as many arguments as the function has parameters.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

long add(int a, long b) { return a + b; }

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    long sum = activate(add, 1);
    (void)sum;
#else
    long sum = activate(add, 1, 2L);
    (void)sum;
#endif
  });
}
