// SPDX-License-Identifier: Apache-2.0
// The arguments of an activation fit the parameters of the function.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct key {
  int value;
};
int value(key k) { return k.value; }

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    activate(value, 1);
#else
    activate(value, key{1});
#endif
  });
}
