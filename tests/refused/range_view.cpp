// SPDX-License-Identifier: Apache-2.0
// A view of a range holds the range's address.
#include <sojourn/sojourn.hpp>

#include <ranges>
#include <vector>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    std::vector<int> v{1, 2};
    auto first = v | std::views::take(1);
    rpc(0, [](decltype(first) f) { return f.size(); }, first).get();
#else
    rpc(0, [](auto numbers) { return numbers.size(); }, std::views::iota(0, 10)).get();
#endif
  });
}
