// SPDX-License-Identifier: Apache-2.0
// A lambda that captures is called with what it takes, too.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    int sum = 0;
    activate([&](int v) { sum += v; });
#else
    int sum = 0;
    activate([&](int v) { sum += v; }, 1);
#endif
  });
}
