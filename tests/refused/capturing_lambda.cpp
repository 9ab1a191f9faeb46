// SPDX-License-Identifier: Apache-2.0
// What a lambda captures lies in a frame of the caller.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    int x = 1;
    rpc(0, [x] { return x; }).get();
#else
    rpc(0, [](int y) { return y; }, 1).get();
#endif
  });
}
