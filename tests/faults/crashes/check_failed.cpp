// SPDX-License-Identifier: Apache-2.0
// A check of the runtime: two fibers wait for the same future.
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_check_failed) was killed by SIGABRT (aborted)
//! says   check failed at .*ticket_waits.hpp:[0-9]*: .*: two fibers wait for the same future: only one may
//! says     .*  faults::wait_too(.*) at .*check_failed.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
[[gnu::noinline]] int wait_too(sojourn::future<int>& result) {
  result.wait();  // here
  return result.get();
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int status = 0;
    if (sojourn::rank_me() == sojourn::rank_count() - 1) {
      auto [answer, result] = sojourn::make_continuation<int>();
      auto reader = sojourn::fork([&its = result] { its.wait(); });
      status = faults::wait_too(result);
    }
    sojourn::barrier();
    return status;
  });
}
