// SPDX-License-Identifier: Apache-2.0
// A recursion without an end in the program's body.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_overflow_main) was killed by SIGSEGV (segmentation fault) at address 0x[0-9a-f]*
//! says   stack overflow: the stack of a main fiber, 8192 KiB, is full; use less of it (recursion, large local arrays), or run with a larger one: --stack-main SIZE (SOJOURN_MAIN_STACK_KIB)
//! says     #1  0x[0-9a-f]*  faults::depth_of(int) at .*overflow_main.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
volatile int end = 1 << 30;
[[gnu::noinline]] int depth_of(int n) {
  volatile char frame[1024];
  frame[0] = static_cast<char>(n);
  if (n >= end) return 0;
  return depth_of(n + 1) + frame[0];  // here
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int status = 0;
    if (sojourn::rank_me() == sojourn::rank_count() - 1) status = faults::depth_of(0);
    sojourn::barrier();
    return status;
  });
}
