// SPDX-License-Identifier: Apache-2.0
// A call by name has the parameters of its signature.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

using add = method<"add", int(int, int)>;

int main(int argc, char** argv) {
#ifdef SOJOURN_EXPECT_ERROR
  rpc_ff(0, add(), 1);
#else
  exports<add>([](int a, int b) { return a + b; });
#endif
  return run(argc, argv, [] {});
}
