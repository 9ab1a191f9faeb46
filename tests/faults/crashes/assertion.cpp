// SPDX-License-Identifier: Apache-2.0
// assert() of the C library says what, the report where.
// clang-format off
//! status 134
//! says .*Assertion `n > 0' failed.
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_assertion) was killed by SIGABRT (aborted)
//! says     #0  0x[0-9a-f]*  faults::half(int) at .*assertion.cpp:LINE
//! says   a call by rank 0, of faults::half(int)
// clang-format on
#undef NDEBUG
#include <cassert>

#include <sojourn/sojourn.hpp>

namespace faults {
[[gnu::noinline]] int half(int n) {
  assert(n > 0);  // here
  return n / 2;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::rpc(sojourn::rank_count() - 1, faults::half, -1).get();
    sojourn::barrier();
  });
}
