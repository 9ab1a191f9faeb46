// SPDX-License-Identifier: Apache-2.0
// A call returns an address of its rank in a private member.
#include <cstdio>
#include <cstring>

#include <sojourn/sojourn.hpp>

#include "hidden.hpp"
using namespace sojourn;

total add_up_bad() { return total_of_private(6); }
total add_up_good() { return total(6); }

int main(int argc, char** argv) {
  const bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    std::printf("%ld\n", rpc(rank_count() - 1, bad ? add_up_bad : add_up_good).get().value());
  });
}
