// SPDX-License-Identifier: Apache-2.0
// The arguments of an access fit the method's parameters.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct object {
  int value = 0;
  int add(int v) { return value += v; }
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    make<object>(0).async<&object::add>(via::rpc, object{});
#else
    make<object>(0).async<&object::add>(via::rpc, 1);
#endif
  });
}
