// SPDX-License-Identifier: Apache-2.0
// What a view refers to ends with the call.
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
    rpc(0, [](int) { return std::string_view("text"); }, 1).get();
#else
    rpc(0, [](int) { return std::string("text"); }, 1).get();
#endif
  });
}
