// SPDX-License-Identifier: Apache-2.0
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_terminates) was killed by SIGABRT (aborted)
//! says   std::terminate was called
//! says     #0  0x[0-9a-f]*  faults::give_up() at .*terminates.cpp:LINE
//! says   a call by rank 0, of faults::give_up()
// clang-format on
#include <sojourn/sojourn.hpp>

#include <exception>

namespace faults {
[[gnu::noinline]] void give_up() {
  std::terminate();  // here
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::rpc(sojourn::rank_count() - 1, faults::give_up).get();
    sojourn::barrier();
  });
}
