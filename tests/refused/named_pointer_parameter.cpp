// SPDX-License-Identifier: Apache-2.0
// What a function is called with by name travels.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

using takes_pointer = method<"f", void(int*)>;
using takes_number = method<"f", void(int)>;

int main(int argc, char** argv) {
#ifdef SOJOURN_EXPECT_ERROR
  (void)takes_pointer::name();
#else
  (void)takes_number::name();
#endif
  return run(argc, argv, [] {});
}
