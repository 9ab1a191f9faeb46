// SPDX-License-Identifier: Apache-2.0
// An exception leaves a thread that nobody joins, on the rank that started it or on another one,
// where it has gone.
// clang-format off
//! status 134
//! says sojourn run: rank 0 (pid [0-9]*, .*crash_detached_named) was killed by SIGABRT (aborted)
//! says   an exception left a detached thread.*: std::out_of_range: no such page
//! several: says   an exception left a detached thread on rank LAST: std::out_of_range: no such page
//! says   thrown on rank LAST, youngest frame first:
//! says     #0  0x[0-9a-f]*  faults::page(int) at .*detached_named.cpp:LINE
//! says     #1  0x[0-9a-f]*  faults::look(int) at .*detached_named.cpp:[0-9]*
//! never says   stack, youngest frame first:
// clang-format on
#include <sojourn/sojourn.hpp>

#include <stdexcept>

namespace faults {
[[gnu::noinline]] int page(int n) {
  if (n < 0) throw std::out_of_range("no such page");  // here
  return n;
}
[[gnu::noinline]] int look(int where) {
  sojourn::migrate(sojourn::self(), where);
  return page(-1) + 1;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::spawn(faults::look, sojourn::rank_count() - 1).detach();
    sojourn::barrier();
    sojourn::barrier();
  });
}
