// SPDX-License-Identifier: Apache-2.0
// A global_ptr<const T> gives const methods only.
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
    global_ptr<const object>(make<object>(0)).call<&object::set>(via::rpc, 1);
#else
    global_ptr<const object>(make<object>(0)).call<&object::get>();
#endif
  });
}
