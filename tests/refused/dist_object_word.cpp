// SPDX-License-Identifier: Apache-2.0
// A word at a call of a dist_object, whose methods stay.
#include <sojourn/sojourn.hpp>

using namespace sojourn;

namespace {
struct shard {
  long sum = 0;
  void add(long n) { sum += n; }
};
}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    dist_object<shard> all;
    all.on(0).call<&shard::add>(via::migrate, 3L);
#else
    dist_object<shard> all;
    all.on(0).call<&shard::add>(3L);
#endif
  });
}
