// SPDX-License-Identifier: Apache-2.0
// A function that promises not to block, and blocks.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
using namespace sojourn;

long answer() { return 42; }

// bad
[[gnu::noinline]] long ask_bad() {
  nonblocking promise;
  return rpc(rank_count() - 1, answer).get();  // other fibers run meanwhile
}

// good
[[gnu::noinline]] future<long> ask_good() {
  nonblocking promise;
  return rpc(rank_count() - 1, answer);  // the caller waits
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() == 0) std::printf("%ld\n", bad ? ask_bad() : ask_good().get());
  });
}
