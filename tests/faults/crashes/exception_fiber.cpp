// SPDX-License-Identifier: Apache-2.0
// An exception leaves a noexcept function of a fiber that has waited.
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_exception_fiber) was killed by SIGABRT (aborted)
//! says   an exception of type int is not caught
//! says     #[0-9]*  0x[0-9a-f]*  faults::fetch(int) at .*exception_fiber.cpp:[0-9]*
//! says   a call by rank 0, of faults::fetch(int)
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
[[gnu::noinline]] int page(int n) {
  if (n < 0) throw 5;
  return n;
}
[[gnu::noinline]] int fetch(int n) noexcept {
  sojourn::yield();
  return page(n) + 1;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::rpc(sojourn::rank_count() - 1, faults::fetch, -1).get();
    sojourn::barrier();
  });
}
