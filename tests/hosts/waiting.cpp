// SPDX-License-Identifier: Apache-2.0
// Says that it is there, and then sends messages to all ranks for ever, computes in between, and
// waits; with a number, that rank dies of a segmentation fault.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "sojourn/sojourn.hpp"

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [&] {
    using namespace sojourn;
    barrier();
    std::printf("rank %d is there\n", rank_me());
    barrier();
    if (argc > 1 && rank_me() == std::atoi(argv[1])) raise(SIGSEGV);
    for (int i = 0;; ++i) {
      for (rank_t r = 0; r < rank_count(); ++r) rpc(r, [] {}).get();
      if (i % 100 == rank_me()) sleep_for(std::chrono::milliseconds(20));
    }
  });
}
