// SPDX-License-Identifier: Apache-2.0
// A call through a null pointer leaves no code to begin at: the stack begins at the caller.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_null_function) was killed by SIGSEGV (segmentation fault) at address 0x0
//! says   a call through a null pointer to a function
//! says     #0  0x0
//! says     #1  0x[0-9a-f]*  faults::calls() at .*null_function.cpp:LINE
//! says   a call by rank 0, of faults::calls()
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
int (*volatile nothing)();
[[gnu::noinline]] int calls() {
  return nothing() + 1;  // here
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::rpc(sojourn::rank_count() - 1, faults::calls).get();
    sojourn::barrier();
  });
}
