// SPDX-License-Identifier: Apache-2.0
// An access to an object that was destroyed, by a function that moves to it: the report names the
// rank that made the access, not the one on which the function finds nothing.
#include <cstdio>
#include <cstring>

#include <sojourn/sojourn.hpp>
using namespace sojourn;

struct account {
  long cents = 100;
  long add(long c) { return cents += c; }
};

[[gnu::noinline]] void close_account(global_ptr<account> a) { destroy(a); }

[[gnu::noinline]] long pay_bad(global_ptr<account> a) {
  close_account(a);
  return a.call<&account::add>(via::migrate, -30);
}
[[gnu::noinline]] long pay_good(global_ptr<account> a) {
  const long left = a.call<&account::add>(via::migrate, -30);
  close_account(a);
  return left;
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return 0;
    auto a = make<account>(rank_count() - 1);
    std::printf("%ld\n", activate(bad ? pay_bad : pay_good, a));
    return counters_now().migrations == (rank_count() > 1 ? 1u : 0u) ? 0 : 1;
  });
}
