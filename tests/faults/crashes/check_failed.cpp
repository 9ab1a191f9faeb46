// SPDX-License-Identifier: Apache-2.0
// A check of the runtime: run() inside run().
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_check_failed) was killed by SIGABRT (aborted)
//! says   check failed at .*run.cpp:[0-9]*: self.segment == nullptr: run() is called twice in one process
//! says     .*  faults::again() at .*check_failed.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
[[gnu::noinline]] int again() {
  volatile int status = sojourn::run(0, nullptr, [] {});  // here
  return status;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int status = 0;
    if (sojourn::rank_me() == sojourn::rank_count() - 1) status = faults::again();
    sojourn::barrier();
    return status;
  });
}
