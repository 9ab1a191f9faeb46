// SPDX-License-Identifier: Apache-2.0
// A result is a value.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int total;
int& reference() { return total; }
int value() { return total; }

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, reference).get();
#else
    rpc(0, value).get();
#endif
  });
}
