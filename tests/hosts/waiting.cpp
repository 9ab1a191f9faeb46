// SPDX-License-Identifier: Apache-2.0
// Says that it is there, and then sends messages to all ranks for ever, and sleeps now and then;
// with a number, that rank dies of a segmentation fault. With the word `late`, one rank works on
// for six seconds after run(). With the word `second`, rank 0 dies, later rank 3 does, and rank 1
// says which of the two it has lost.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sojourn/sojourn.hpp"

void second_loss() {
  using namespace sojourn;
  barrier();
  if (rank_me() == 0) {
    sleep_for(std::chrono::milliseconds(200));
    raise(SIGSEGV);
  } else if (rank_me() == 3) {
    // Longer than it takes that the job is known to end.
    sleep_for(std::chrono::milliseconds(1000));
    _exit(9);
  } else if (rank_me() == 1) {
    try {
      rpc(3, [] { sleep_for(std::chrono::seconds(60)); }).get();
    } catch (const rank_lost& e) {
      std::printf("rank 1 has lost rank %d\n", e.rank());
    }
  }
  sleep_for(std::chrono::seconds(60));
}

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "late") == 0) {
    const int status = sojourn::run(argc, argv, [] { sojourn::barrier(); });
    if (sojourn::rank_me() == 0) sleep(6);
    return status;
  }
  if (argc > 1 && std::strcmp(argv[1], "second") == 0) return sojourn::run(argc, argv, second_loss);
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
