// SPDX-License-Identifier: Apache-2.0
// The elements of a span that may be written belong to the caller.
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
    rpc(0, [](std::span<int> s) { return s.size(); }, std::span<int>(v)).get();
#else
    std::vector<int> v(3);
    rpc(0, [](std::span<const int> s) { return s.size(); }, std::span<const int>(v)).get();
#endif
  });
}
