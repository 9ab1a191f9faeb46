// SPDX-License-Identifier: Apache-2.0
// A local array is written past its end until the stack is left at its older end: no overflow.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_past_stack) was killed by SIGSEGV (segmentation fault) at address 0x[0-9a-f]*
//! says   an access beyond the oldest frame of a main fiber, to the guard above its stack: is an index of a local array too large?
//! says     #0  0x[0-9a-f]*  faults::fill(long volatile\*, long) at .*past_stack.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
[[gnu::noinline]] void fill(volatile long* words, long count) {
  for (long i = 0; i < count; ++i) {
    words[i] = -1;  // here
  }
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    volatile long local[4] = {};
    if (sojourn::rank_me() == sojourn::rank_count() - 1) faults::fill(local, 1'000'000);
    sojourn::barrier();
    return local[0] == 0 ? 0 : 3;
  });
}
