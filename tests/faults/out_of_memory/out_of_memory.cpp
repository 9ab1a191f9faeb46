// SPDX-License-Identifier: Apache-2.0
// The last rank takes memory until the kernel stops it; the others wait for it.
#include <cstring>
#include <memory>
#include <vector>

#include <sojourn/sojourn.hpp>

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    sojourn::barrier();
    std::vector<std::unique_ptr<char[]>> taken;
    constexpr std::size_t bytes = 1 << 20;
    while (sojourn::rank_me() == sojourn::rank_count() - 1) {
      taken.push_back(std::make_unique<char[]>(bytes));
      std::memset(taken.back().get(), 1, bytes);
    }
    sojourn::barrier();
  });
}
