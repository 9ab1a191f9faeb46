// SPDX-License-Identifier: Apache-2.0
// A global_ptr that was kept from one run of a program to the next.
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
using namespace sojourn;

struct account {
  long cents = 100;
  long add(long c) { return cents += c; }
};

// bad
[[gnu::noinline]] long restore_bad(global_ptr<account> a) {
  // As a file would have it that an earlier job wrote: the address of an object of that job.
  auto kept = global_ptr<account>::at(a.address() + (std::uint64_t{1} << 24));
  return kept.call<&account::add>(30);
}

// good
[[gnu::noinline]] long restore_good(global_ptr<account> a) {
  return a.call<&account::add>(30);  // made in this job, from values that the file holds
}

int main(int argc, char** argv) {
  bool bad = argc > 1 && std::strcmp(argv[1], "bad") == 0;
  return run(argc, argv, [bad] {
    if (rank_me() != 0) return;
    auto a = make<account>(rank_count() - 1);
    std::printf("%ld\n", bad ? restore_bad(a) : restore_good(a));
  });
}
