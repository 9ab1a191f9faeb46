// SPDX-License-Identifier: Apache-2.0
// A trap that the processor raises.
// clang-format off
//! status 132
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_trap) was killed by SIGILL (illegal instruction) at address 0x[0-9a-f]*
//! says     #0  0x[0-9a-f]*  faults::unreachable() at .*trap.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
[[gnu::noinline]] void unreachable() {
  __builtin_trap();  // here
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == sojourn::rank_count() - 1) faults::unreachable();
    sojourn::barrier();
  });
}
