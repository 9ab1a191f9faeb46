// SPDX-License-Identifier: Apache-2.0
// A mutex is destroyed while a fiber holds it.
// clang-format off
//! status 134
//! says sojourn run: rank LAST (pid [0-9]*, .*crash_mutex_destroyed) was killed by SIGABRT (aborted)
//! says   a sojourn::mutex (0x[0-9a-f]*) is destroyed while a fiber holds it
//! says     .*  faults::forgets_to_unlock() at .*mutex_destroyed.cpp:LINE
// clang-format on
#include <sojourn/sojourn.hpp>

namespace faults {
[[gnu::noinline]] int forgets_to_unlock() {
  sojourn::mutex m;
  m.lock();
  return 1;
}  // here
}  // namespace faults

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    if (sojourn::rank_me() == sojourn::rank_count() - 1) faults::forgets_to_unlock();
    sojourn::barrier();
  });
}
