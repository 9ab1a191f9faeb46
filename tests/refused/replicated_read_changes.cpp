// SPDX-License-Identifier: Apache-2.0
// A version never changes: what reads it is const.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

struct counter {
  long n = 0;
  void add(long k) { n += k; }
  long get() const { return n; }
};

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto c = make_replicated<counter>();
#ifdef SOJOURN_EXPECT_ERROR
    c.read<&counter::add>(1L);
#else
    c.update<&counter::add>(1L);
#endif
    return static_cast<int>(c.read<&counter::get>()) - 1;
  });
}
