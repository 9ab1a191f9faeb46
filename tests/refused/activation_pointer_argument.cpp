// SPDX-License-Identifier: Apache-2.0
// Frames that may travel have arguments that may.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    int x = 1;
    activate([](int* p) { return *p; }, &x);
#else
    activate([](int x) { return x; }, 1);
#endif
  });
}
