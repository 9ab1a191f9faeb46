// SPDX-License-Identifier: Apache-2.0
// run() inside run().
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_run_twice) was killed by SIGABRT (aborted)
//! says   run() is called a second time in this process, and a process is a rank of one job, once: put all that it does into the function that is passed to run()
//! says     .*  faults::again() at .*run_twice.cpp:LINE
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
