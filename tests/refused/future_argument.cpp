// SPDX-License-Identifier: Apache-2.0
// A future is not an argument: its frame may travel, it may not be copied.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int one() { return 1; }

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    rpc(0, [](future<int> f) { return f.get(); }, rpc(0, one)).get();
#else
    rpc(0, [](int x) { return x; }, rpc(0, one).get()).get();
#endif
  });
}
