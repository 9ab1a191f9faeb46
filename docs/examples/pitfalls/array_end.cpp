// SPDX-License-Identifier: Apache-2.0
// A copy beyond the end of an array.
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <span>
using namespace sojourn;

// bad
[[gnu::noinline]] void fill_bad(global_ptr<long> row) {
  std::array<long, 9> values{};
  put(std::span<const long>(values), row);  // of eight: what lies behind is overwritten
}

// good
[[gnu::noinline]] void fill_good(global_ptr<long> row) {
  std::array<long, 8> values{};
  put(std::span<const long>(values), row);
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto row = make_array<long>(rank_count() - 1, 8);
    bad ? fill_bad(row) : fill_good(row);
    std::printf("%ld\n", load(row + 7));
  });
}
