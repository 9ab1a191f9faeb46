// SPDX-License-Identifier: Apache-2.0
// A recursion without an end, in a function that another rank has called.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_overflow_fiber) was killed by SIGSEGV (segmentation fault) at address 0x[0-9a-f]*
//! says   stack overflow: the stack of a fiber, 256 KiB, is full; use less of it (recursion, large local arrays), or run with larger ones: --stack-fiber SIZE (SOJOURN_STACK_KIB)
//! says     #1  0x[0-9a-f]*  faults::depth_of(int) at .*overflow_fiber.cpp:LINE
//! says     the same [0-9][0-9]* more times
//! says   a call by rank 0, of faults::begin(int)
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
volatile int end = 1 << 30;
[[gnu::noinline]] int depth_of(int n) {
  volatile char frame[64];
  frame[0] = static_cast<char>(n);
  if (n >= end) return 0;
  return depth_of(n + 1) + frame[0];  // here
}
[[gnu::noinline]] int begin(int n) { return depth_of(n) + 1; }
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::rpc(sojourn::rank_count() - 1, faults::begin, 0).get();
    sojourn::barrier();
  });
}
