// SPDX-License-Identifier: Apache-2.0
// An address of private memory means nothing on another rank.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int peek(const int* p) { return *p; }
int twice(int x) { return 2 * x; }

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    int x = 1;
    rpc(0, peek, static_cast<const int*>(&x)).get();
#else
    rpc(0, twice, 1).get();
#endif
  });
}
