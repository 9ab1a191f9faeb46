// SPDX-License-Identifier: Apache-2.0
// A method that takes an address cannot be called from elsewhere.
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
    make<object>(0).call<&object::point>(via::rpc, &x);
#else
    make<object>(0).call<&object::get>(via::rpc);
#endif
  });
}
