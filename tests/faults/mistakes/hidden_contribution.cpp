// SPDX-License-Identifier: Apache-2.0
// A rank passes an address of its own to all others.
#include <cstdio>
#include <cstring>

#include <sojourn/sojourn.hpp>

#include "hidden.hpp"
using namespace sojourn;

int main(int argc, char** argv) {
  const bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    const total mine = bad && rank_me() == 0 ? total_of_private(6) : total(6);
    const total all = broadcast(mine, 0);
    if (rank_me() == 0) std::printf("%ld\n", all.value());
  });
}
