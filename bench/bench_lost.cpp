// SPDX-License-Identifier: Apache-2.0
//
// A job that the driver takes a host from (net.detected_s). It says when it has begun, and goes on
// until it is ended. `--operation`:
//
//   idle       all ranks wait in a barrier for rank 0, which sleeps
//   sending    each rank calls all others, again and again
//   computing  no rank looks at its messages

#include <chrono>
#include <cstdio>
#include <cstring>

#include <sojourn/sojourn.hpp>

namespace {

using namespace sojourn;

[[noreturn]] void idle() {
  if (rank_me() == 0) {
    for (;;) sleep_for(std::chrono::seconds(60));
  }
  for (;;) barrier();
}

[[noreturn]] void send() {
  for (;;) {
    for (rank_t r = 0; r < rank_count(); ++r) rpc(r, [] {}).get();
  }
}

[[noreturn]] void compute() {
  for (volatile long i = 0;;) i = i + 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 2 ? argv[2] : "";
  if (argc != 3 || std::strcmp(argv[1], "--operation") != 0) {
    std::fprintf(stderr, "bench_lost --operation idle|sending|computing: see bench/README.md\n");
    return 2;
  }
  return run(argc, argv, [what] {
    barrier();
    if (rank_me() == 0) {
      std::puts("begun");
      std::fflush(stdout);
    }
    if (std::strcmp(what, "sending") == 0) send();
    if (std::strcmp(what, "computing") == 0) compute();
    idle();
  });
}
