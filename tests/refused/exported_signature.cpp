// SPDX-License-Identifier: Apache-2.0
// What is exported has the signature of its name.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

using add = method<"add", int(int, int)>;

int main(int argc, char** argv) {
#ifdef SOJOURN_EXPECT_ERROR
  exports<add>([](int a) { return a; });
#else
  exports<add>([](int a, int b) { return a + b; });
#endif
  return run(argc, argv, [] {});
}
