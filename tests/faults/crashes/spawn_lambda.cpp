// SPDX-License-Identifier: Apache-2.0
// Nobody catches what a thread, a lambda on another rank, has thrown: it comes out of join().
// clang-format off
//! status 134
//! says sojourn run: rank 0 (pid [0-9]*, .*crash_spawn_lambda) was killed by SIGABRT (aborted)
//! says   an exception of type std::out_of_range is not caught: no such page
//! says   thrown on rank LAST, youngest frame first:
//! says     #0  0x[0-9a-f]*  .*main.*operator().* at .*spawn_lambda.cpp:LINE
//! says   stack, youngest frame first:
//! says     #[0-9]  0x[0-9a-f]*  faults::wait(.*) at .*spawn_lambda.cpp:[0-9]*
// clang-format on
#include <sojourn/sojourn.hpp>

#include <stdexcept>

namespace faults {
[[gnu::noinline]] int wait(sojourn::thread t) {
  t.join();
  return 1;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int status = 0;
    if (sojourn::rank_me() == 0) {
      status = faults::wait(sojourn::spawn_on(
          sojourn::rank_count() - 1,
          [](int n) {
            if (n < 0) throw std::out_of_range("no such page");  // here
          },
          -1));
    }
    sojourn::barrier();
    return status;
  });
}
