// SPDX-License-Identifier: Apache-2.0
// Names that have changed work for one version, with a warning.
#include <sojourn/sojourn.hpp>

#ifdef SOJOURN_EXPECT_ERROR
#pragma GCC diagnostic error "-Wdeprecated-declarations"
#else
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] { return static_cast<int>(gather_all(rank_me()).size()); });
}
