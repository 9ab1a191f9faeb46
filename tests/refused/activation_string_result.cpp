// SPDX-License-Identifier: Apache-2.0
// The result of frames that may travel comes from another rank.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    (void)activate([] { return std::string("text"); });
#else
    (void)activate([] { return inline_string<9>("text"); });
#endif
  });
}
