// SPDX-License-Identifier: Apache-2.0
// A value that may lie on another rank.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    auto p = make<int>(0, 1);
#ifdef SOJOURN_EXPECT_ERROR
    return *p;
#else
    return load(p);
#endif
  });
}
