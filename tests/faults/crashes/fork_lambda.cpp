// SPDX-License-Identifier: Apache-2.0
// Nobody catches what a child, a lambda, has thrown: it comes out of get() elsewhere.
// clang-format off
//! status 134
//! says   an exception of type std::out_of_range is not caught: no such page
//! says   thrown on rank 0, youngest frame first:
//! says     #0  0x[0-9a-f]*  .*main.*operator().* at .*fork_lambda.cpp:LINE
//! says   stack, youngest frame first:
//! says     #[0-9]  0x[0-9a-f]*  faults::read(.*) at .*fork_lambda.cpp:[0-9]*
// clang-format on
#include <sojourn/sojourn.hpp>

#include <stdexcept>

namespace faults {
[[gnu::noinline]] int read(sojourn::future<int>& page) { return page.get() + 1; }
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int status = 0;
    if (sojourn::rank_me() == 0) {
      auto page = sojourn::fork([&status]() -> int {
        sojourn::yield();
        if (status == 0) throw std::out_of_range("no such page");  // here
        return status;
      });
      status = faults::read(page);
    }
    sojourn::barrier();
    return status;
  });
}
