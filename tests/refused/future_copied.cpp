// SPDX-License-Identifier: Apache-2.0
// A result has one reader.
#include <sojourn/sojourn.hpp>

#include <functional>
#include <string>

using namespace sojourn;

int one() { return 1; }

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    auto f = rpc(0, one);
    auto g = f;
    g.get();
#else
    auto f = rpc(0, one);
    auto g = std::move(f);
    g.get();
#endif
  });
}
