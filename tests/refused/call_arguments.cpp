// SPDX-License-Identifier: Apache-2.0
// A call has as many arguments as the function has parameters.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int add(int a, int b) { return a + b; }

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, add, 1).get();
#else
    rpc(0, add, 1, 2).get();
#endif
  });
}
