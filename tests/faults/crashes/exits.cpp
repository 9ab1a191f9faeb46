// SPDX-License-Identifier: Apache-2.0
// exit() with status 0 would look like success.
// clang-format off
//! status 1
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_exits) exited with status 0 before its part of the job was finished
//! says   exit(0) was called in the middle of the job: return from the body of run() instead
//! says     #0  0x[0-9a-f]*  faults::done() at .*exits.cpp:LINE
//! says   a call by rank 0, of faults::done()
// clang-format on
#include <sojourn/sojourn.hpp>

#include <cstdlib>

namespace faults {
[[gnu::noinline]] void done() {
  std::exit(0);  // here
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::rpc(sojourn::rank_count() - 1, faults::done).get();
    sojourn::barrier();
  });
}
