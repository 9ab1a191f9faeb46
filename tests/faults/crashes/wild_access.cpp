// SPDX-License-Identifier: Apache-2.0
// A number is taken for an address.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_wild_access) was killed by SIGSEGV (segmentation fault) at address 0x123456789000
//! says   an access through a wild pointer: nothing is mapped at this address
//! says     #0  0x[0-9a-f]*  faults::read(unsigned long) at .*wild_access.cpp:LINE
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
      status = faults::read(0x123456789000) != 0 ? 3 : 4;
    }
    sojourn::barrier();
    return status;
  });
}
