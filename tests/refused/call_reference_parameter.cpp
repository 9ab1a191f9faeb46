// SPDX-License-Identifier: Apache-2.0
// A function cannot change its caller's variables from another rank.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

void fill(int& out) { out = 1; }
int value(const int& in) { return in; }

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, fill, 1).get();
#else
    rpc(0, value, 1).get();
#endif
  });
}
