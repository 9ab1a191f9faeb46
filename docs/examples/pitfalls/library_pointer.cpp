// SPDX-License-Identifier: Apache-2.0
// A frame that migrates with a pointer to what a library holds.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
using namespace sojourn;

struct cell {
  long value = 7;
  long get() const { return value; }
};

// bad
void print_bad(global_ptr<cell> c) {
  std::FILE* out = stdout;  // lies in the C library
  std::fprintf(out, "%ld\n", c.call<&cell::get>(via::migrate));
}

// good
void print_good(global_ptr<cell> c) {
  long value = c.call<&cell::get>(via::migrate);
  std::fprintf(stdout, "%ld\n", value);  // of the rank that it is on now
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto c = make<cell>(rank_count() - 1);
    activate(bad ? print_bad : print_good, c);
  });
}
