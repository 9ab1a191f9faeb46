// SPDX-License-Identifier: Apache-2.0
// A method where a function is wanted.
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
    rpc_ff(0, &shard::add, make<shard>(0), 3L);
#else
    make<shard>(0).ff<&shard::add>(3L);
#endif
  });
}
