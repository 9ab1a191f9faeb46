// SPDX-License-Identifier: Apache-2.0
// What a lambda refers to is in a frame of the caller.
#include <sojourn/sojourn.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    int x = 1;
    rpc(0, [&] { return x; }).get();
#else
    rpc(0, [](int x) { return x; }, 1).get();
#endif
  });
}
