// SPDX-License-Identifier: Apache-2.0
// Functions that the compiler has put into others are named, each with its line.
// clang-format off
//! status 139
//! says     #0  0x[0-9a-f]*  .*first_of(faults::node const\*).* at .*inlined.cpp:LINE (inlined)
//! says  *.*sum_of(faults::node const\*).* at .*inlined.cpp:[0-9]* (inlined)
//! says  *faults::total(unsigned long) at .*inlined.cpp:[0-9]*
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
struct node {
  volatile long first, second;
};
[[gnu::always_inline]] inline long first_of(const node* n) {
  return n->first;  // here
}
[[gnu::always_inline]] inline long sum_of(const node* n) { return first_of(n) + n->second; }
[[gnu::noinline]] long total(std::uint64_t at) {
  return sum_of(reinterpret_cast<const node*>(at)) + 1;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int status = 0;
    if (sojourn::rank_me() == sojourn::rank_count() - 1) status = faults::total(0) != 0 ? 3 : 4;
    sojourn::barrier();
    return status;
  });
}
