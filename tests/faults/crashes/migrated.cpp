// SPDX-License-Identifier: Apache-2.0
// An activation that has come from another rank follows a null pointer; the report has its frames
// and the function, on the rank it came from, that waits for it.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_migrated) was killed by SIGSEGV (segmentation fault) at address 0x0
//! says   an access through a null pointer, to the byte at offset 0
//! says     #0  0x[0-9a-f]*  faults::lookup(int, unsigned long) at .*migrated.cpp:LINE
//! several: says   an activation that was called on rank 0, where this waits for its result:
//! several: says     #0  0x[0-9a-f]*  faults::search(int) at .*migrated.cpp:[0-9]*
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
[[gnu::noinline]] long lookup(int where, std::uint64_t at) {
  sojourn::migrate_to(where);
  return *reinterpret_cast<volatile long*>(at);  // here
}
[[gnu::noinline]] long search(int where) {
  return sojourn::activate(lookup, where, std::uint64_t{0}) + 1;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int status = 0;
    if (sojourn::rank_me() == 0) status = faults::search(sojourn::rank_count() - 1) != 0 ? 3 : 4;
    sojourn::barrier();
    return status;
  });
}
