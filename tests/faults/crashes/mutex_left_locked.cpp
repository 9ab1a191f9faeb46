// SPDX-License-Identifier: Apache-2.0
// A fiber ends while it holds a mutex.
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_mutex_left_locked) was killed by SIGABRT (aborted)
//! says   a fiber has ended while it held a sojourn::mutex (0x[0-9a-f]*), which nobody can unlock any more: unlock it first, or use std::lock_guard
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
sojourn::mutex guard;
int locks() {
  guard.lock();
  return 1;
}
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == 0) sojourn::rpc(sojourn::rank_count() - 1, faults::locks).get();
    sojourn::barrier();
  });
}
