// SPDX-License-Identifier: Apache-2.0
// A span shows memory of the rank that the activation would leave.
#include <sojourn/sojourn.hpp>

#include <array>
#include <numeric>
#include <span>

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
#ifdef SOJOURN_EXPECT_ERROR
    std::array<int, 3> values{1, 2, 3};
    activate([](std::span<int> v) { return std::accumulate(v.begin(), v.end(), 0); },
             std::span<int>(values));
#else
    activate([](std::array<int, 3> v) { return std::accumulate(v.begin(), v.end(), 0); },
             std::array<int, 3>{1, 2, 3});
#endif
  });
}
