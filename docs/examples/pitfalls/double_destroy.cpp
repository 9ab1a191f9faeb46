// SPDX-License-Identifier: Apache-2.0
// An object that two owners destroy.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
using namespace sojourn;

struct account {
  long cents = 100;
};

[[gnu::noinline]] void close_account(global_ptr<account> a) { destroy(a); }

// bad
[[gnu::noinline]] void end_bad(global_ptr<account> a) {
  close_account(a);
  destroy(a);  // again
}

// good
[[gnu::noinline]] void end_good(global_ptr<account> a) {
  close_account(a);  // one function owns the object
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto a = make<account>(rank_count() - 1);
    bad ? end_bad(a) : end_good(a);
    std::printf("ended\n");
  });
}
