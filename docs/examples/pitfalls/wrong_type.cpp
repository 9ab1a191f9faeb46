// SPDX-License-Identifier: Apache-2.0
// A global_ptr whose type is not that of the object.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <cstring>
using namespace sojourn;

struct account {
  long cents = 100;
  long add(long c) { return cents += c; }
};
struct customer {
  long number = 5;
};

// bad
[[gnu::noinline]] long pay_bad(global_ptr<customer> c) {
  return global_ptr<account>::at(c.address()).call<&account::add>(30);
}

// good
[[gnu::noinline]] long pay_good(global_ptr<account> a) { return a.call<&account::add>(30); }

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto c = make<customer>(rank_count() - 1);
    auto a = make<account>(rank_count() - 1);
    std::printf("%ld\n", bad ? pay_bad(c) : pay_good(a));
  });
}
