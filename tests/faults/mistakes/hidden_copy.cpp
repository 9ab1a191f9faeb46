// SPDX-License-Identifier: Apache-2.0
// A rank stores an address of its own in the heap of another one.
#include <cstdio>
#include <cstring>

#include <sojourn/sojourn.hpp>

#include "hidden.hpp"
using namespace sojourn;

void keep(global_ptr<total> there, const total& value) { store(there, value); }

int main(int argc, char** argv) {
  const bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    const auto there = make<total>(rank_count() - 1, 0);
    keep(there, bad ? total_of_private(6) : total(6));
    std::printf("%ld\n", load(there).value());
  });
}
