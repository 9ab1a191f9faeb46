// SPDX-License-Identifier: Apache-2.0
// docs/migration.md: a lambda that captures is called on another rank.
#include <sojourn/sojourn.hpp>

#include <cstdio>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() != 0) return;
    int x = 20;
#ifdef SOJOURN_EXPECT_ERROR
    std::printf("%d\n", rpc(0, [x] { return x + 1; }).get());
#else
    std::printf("%d\n", rpc(0, [](int y) { return y + 1; }, x).get());
#endif
  });
}
