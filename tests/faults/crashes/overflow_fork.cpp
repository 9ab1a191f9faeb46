// SPDX-License-Identifier: Apache-2.0
// Children in place without an end, in a function that another rank has called: the stack ends, and
// the report names who forks.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_overflow_fork) was killed by SIGSEGV (segmentation fault) at address 0x[0-9a-f]*
//! says   stack overflow: the stack of a fiber, 256 KiB, is full; use less of it (recursion, large local arrays), or run with larger ones: --stack-fiber SIZE (SOJOURN_STACK_KIB)
//! says     #[0-9]* *0x[0-9a-f]*  faults::depth_of(int) at .*overflow_fork.cpp:[0-9]*
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
volatile int end = 1 << 30;
[[gnu::noinline]] int depth_of(int n) {
  if (n >= end) return 0;
  // By reference: another rank would be given one that is not.
  auto child = sojourn::fork([&n] { return depth_of(n + 1); });
  return child.get() + n;
}
[[gnu::noinline]] int begin(int n) { return depth_of(n) + 1; }
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::rpc(sojourn::rank_count() - 1, faults::begin, 0).get();
    sojourn::barrier();
  });
}
