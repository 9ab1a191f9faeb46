// SPDX-License-Identifier: Apache-2.0
// So do the header and the name of what `nonblocking` was before.
#include <sojourn/non_blocking.hpp>
#include <sojourn/sojourn.hpp>

#ifdef SOJOURN_EXPECT_ERROR
#pragma GCC diagnostic error "-Wdeprecated-declarations"
#else
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] { non_blocking promise; });
}
