// SPDX-License-Identifier: Apache-2.0
// An access to an object that was destroyed.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
using namespace sojourn;

struct account {
  long cents = 100;
  long add(long c) { return cents += c; }
};

[[gnu::noinline]] void close_account(global_ptr<account> a) { destroy(a); }

// bad
[[gnu::noinline]] long pay_bad(global_ptr<account> a) {
  close_account(a);
  return a.call<&account::add>(-30);  // what lies there now is not said
}

// good
[[gnu::noinline]] long pay_good(global_ptr<account> a) {
  long left = a.call<&account::add>(-30);
  close_account(a);
  return left;
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto a = make<account>(rank_count() - 1);
    std::printf("%ld\n", bad ? pay_bad(a) : pay_good(a));
  });
}
