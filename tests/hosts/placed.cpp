// SPDX-License-Identifier: Apache-2.0
// A program that launchers of sites start directly. Each rank says where it is; what follows is by
// the first argument: `input` (rank 0 says the line that it reads), `exit` (the last rank ends with
// the status of the second argument), `die` (it aborts), `wait` (all sleep). A static object says
// in which rank it is made.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>

#include "sojourn/sojourn.hpp"

namespace {

struct made_before_main {
  made_before_main() {
    const char* rank = std::getenv("SOJOURN_RANK");
    std::printf("made in %s\n", rank == nullptr ? "no rank" : rank);
  }
} object;

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  return sojourn::run(argc, argv, [&]() -> int {
    using namespace sojourn;
    int first_near = 0;
    while (!is_near(first_near)) ++first_near;
    std::printf("rank %d of %d, first here %d, all %d, as %s\n", rank_me(), rank_count(),
                first_near, reduce(1, std::plus<>{}), argv[0]);
    std::fflush(stdout);
    barrier();
    const bool is_last = rank_me() == rank_count() - 1;
    if (what == "input" && rank_me() == 0) {
      std::string line;
      std::getline(std::cin, line);
      std::printf("read: %s\n", line.c_str());
    }
    if (what == "die" && is_last) std::abort();
    if (what == "exit" && is_last) return std::atoi(argv[2]);
    while (what == "wait") sleep_for(std::chrono::seconds(1));
    barrier();
    return 0;
  });
}
