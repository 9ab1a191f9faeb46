// SPDX-License-Identifier: Apache-2.0
// The operation of a reduce runs on other ranks.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    int x = 1;
    reduce(1, [x](int a, int b) { return a + b + x; });
#else
    reduce(1, std::plus<>{});
#endif
  });
}
