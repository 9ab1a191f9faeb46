// SPDX-License-Identifier: Apache-2.0
// An address of nothing in particular counts nothing.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    (void)(static_pointer_cast<void>(make<int>(0, 1)) + 1);
#else
    (void)static_pointer_cast<void>(make<int>(0, 1));
#endif
  });
}
