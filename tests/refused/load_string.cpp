// SPDX-License-Identifier: Apache-2.0
// One-sided copies are of bytes.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    load(global_ptr<std::string>());
#else
    load(make<int>(0, 1));
#endif
  });
}
