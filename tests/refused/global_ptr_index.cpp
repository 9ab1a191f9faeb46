// SPDX-License-Identifier: Apache-2.0
// An element of an array may lie on another rank.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    (void)make_array<int>(0, 2)[1];
#else
    (void)load(make_array<int>(0, 2) + 1);
#endif
  });
}
