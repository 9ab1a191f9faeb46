// SPDX-License-Identifier: Apache-2.0
// A value that is broadcast means the same on every rank.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    int x = 1;
    broadcast(&x);
#else
    broadcast(1);
#endif
  });
}
