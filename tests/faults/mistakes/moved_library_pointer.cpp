// SPDX-License-Identifier: Apache-2.0
// A thread that is moved with a pointer to what a library holds.
#include <cstdio>

#include "moved.hpp"
using namespace sojourn;

void prints_bad() {
  std::FILE* out = stdout;  // lies in the C library
  while (not_moved()) yield();
  std::fprintf(out, "rank %d\n", rank_me());
}
void prints_good() {
  while (not_moved()) yield();
  std::fprintf(stdout, "rank %d\n", rank_me());
}

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    if (rank_me() != 0 || rank_count() == 1) return;
    thread t = spawn(bad ? prints_bad : prints_good);
    yield();
    migrate(t, last());
    t.join();
  });
}
