// SPDX-License-Identifier: Apache-2.0
// A freed or overwritten pointer often holds what no address can be.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_wild_non_address) was killed by SIGSEGV (segmentation fault).*
//! says   an access through a wild pointer: .*
//! says     #0  0x[0-9a-f]*  faults::read(unsigned long) at .*wild_non_address.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
[[gnu::noinline]] long read(std::uint64_t address) {
  return *reinterpret_cast<volatile long*>(address);  // here
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int status = 0;
    if (sojourn::rank_me() == sojourn::rank_count() - 1) {
      status = faults::read(0xdeaddeaddeaddeadu) != 0 ? 3 : 4;
    }
    sojourn::barrier();
    return status;
  });
}
