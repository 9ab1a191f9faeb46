// SPDX-License-Identifier: Apache-2.0
// An exception that the program's body does not catch.
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_exception_main) was killed by SIGABRT (aborted)
//! says   an exception of type std::out_of_range is not caught: no such page
//! says     #0  0x[0-9a-f]*  faults::page(int) at .*exception_main.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

#include <stdexcept>

namespace faults {
[[gnu::noinline]] int page(int n) {
  if (n < 0) throw std::out_of_range("no such page");  // here
  return n;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int status = 0;
    if (sojourn::rank_me() == sojourn::rank_count() - 1) status = faults::page(-1);
    sojourn::barrier();
    return status;
  });
}
