// SPDX-License-Identifier: Apache-2.0
// A copy of an object as something else of its size.
#include <cstdio>
#include <cstring>

#include <sojourn/sojourn.hpp>
using namespace sojourn;

[[gnu::noinline]] double read_bad(global_ptr<long> p) {
  return load(global_ptr<double>::at(p.address()));
}
[[gnu::noinline]] double read_good(global_ptr<long> p) { return static_cast<double>(load(p)); }

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto p = make<long>(rank_count() - 1, 7L);
    std::printf("%g\n", bad ? read_bad(p) : read_good(p));
    destroy(p);
  });
}
