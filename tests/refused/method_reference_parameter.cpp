// SPDX-License-Identifier: Apache-2.0
// A method cannot change its caller's variables from another rank.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

struct object {
  int value = 0;
  int get() const { return value; }
  void set(int v) { value = v; }
  int add(int a, long b) { return value += a + static_cast<int>(b); }
  int& reference() { return value; }
  void fill(int& out) { out = value; }
  void point(int* out) { *out = value; }
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    int x = 0;
    make<object>(0).call<&object::fill>(via::rpc, x);
#else
    make<object>(0).call<&object::get>(via::rpc);
#endif
  });
}
