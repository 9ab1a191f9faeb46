// SPDX-License-Identifier: Apache-2.0
// A thread may wait, and then the message is gone.
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
    std::vector<int> v(3);
    spawn_on(0, [](view<int>) {}, view(v)).join();
#else
    std::vector<int> v(3);
    spawn_on(0, [](std::span<const int>) {}, std::span<const int>(v)).join();
#endif
  });
}
