// SPDX-License-Identifier: Apache-2.0
// A future that is dropped, and its exception with it.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
#include <stdexcept>
using namespace sojourn;

long refuse() { throw std::runtime_error("refused"); }

// bad
[[gnu::noinline]] void ask_bad() {
  auto answer = rpc(rank_count() - 1, refuse);
  answer.wait();
}  // nobody learns that it failed

// good
[[gnu::noinline]] void ask_good() {
  auto answer = rpc(rank_count() - 1, refuse);
  try {
    answer.get();
  } catch (const std::runtime_error& e) {
    std::printf("failed: %s\n", e.what());
  }
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() == 0) bad ? ask_bad() : ask_good();
  });
}
