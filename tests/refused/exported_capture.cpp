// SPDX-License-Identifier: Apache-2.0
// What is exported outlives where it was written.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

using add = method<"add", int(int)>;
int number = 1;

int main(int argc, char** argv) {
#ifdef SOJOURN_EXPECT_ERROR
  int local = 1;
  exports<add>([local](int a) { return a + local; });
#else
  exports<add>([](int a) { return a + number; });
#endif
  return run(argc, argv, [] {});
}
