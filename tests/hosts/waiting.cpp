// SPDX-License-Identifier: Apache-2.0
// Says that it is there, and then sends messages to all ranks for ever, computes in between, and
// waits; with a number, that rank dies of a segmentation fault. With the word `late`, one rank
// works on for six seconds after run().
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sojourn/sojourn.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "late") == 0) {
    const int status = sojourn::run(argc, argv, [] { sojourn::barrier(); });
    if (sojourn::rank_me() == 0) sleep(6);
    return status;
  }
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
