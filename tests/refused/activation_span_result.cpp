// SPDX-License-Identifier: Apache-2.0
// What an activation returns may be read on another rank.
#include <sojourn/sojourn.hpp>

#include <array>
#include <span>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    static std::array<int, 3> values;
    activate([](int n) { return std::span<int>(values).first(n); }, 2);
#else
    activate([](int n) { return std::array<int, 3>{n, n, n}; }, 2);
#endif
  });
}
