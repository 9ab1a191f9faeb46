// SPDX-License-Identifier: Apache-2.0
// A null pointer is followed in a function that another rank has called.
// clang-format off
//! status 139
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_null_access) was killed by SIGSEGV (segmentation fault) at address 0x8
//! says   an access through a null pointer, to the byte at offset 8
//! says     #0  0x[0-9a-f]*  faults::next_of(faults::node\*) at .*null_access.cpp:LINE
//! says   a call by rank 0, of faults::walk(unsigned long)
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
struct node {
  long key;
  node* next;
};
[[gnu::noinline]] node* next_of(node* n) {
  node* volatile* next = &n->next;
  return *next;  // here
}
[[gnu::noinline]] long walk(std::uint64_t start) {
  return next_of(reinterpret_cast<node*>(start)) != nullptr ? 1 : 2;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) {
      sojourn::rpc(sojourn::rank_count() - 1, faults::walk, std::uint64_t{0}).get();
    }
    sojourn::barrier();
  });
}
