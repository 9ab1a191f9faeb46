// SPDX-License-Identifier: Apache-2.0
// A fork whose future is dropped at once.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    long sum = 0;
#ifdef SOJOURN_EXPECT_ERROR
#pragma GCC diagnostic error "-Wunused-result"
    fork([&] { ++sum; });
#else
    auto child = fork([&] { ++sum; });
    child.get();
#endif
    return static_cast<int>(sum);
  });
}
