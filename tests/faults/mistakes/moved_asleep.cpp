// SPDX-License-Identifier: Apache-2.0
// A thread that is moved while it sleeps, several calls deep, and another lies where it ran.
#include <chrono>
#include <string>

#include "moved.hpp"
using namespace sojourn;

[[gnu::noinline]] void nap(int depth) {
  if (depth > 0) {
    nap(depth - 1);
  } else {
    while (not_moved()) sleep_for(std::chrono::milliseconds(100));
  }
  asm volatile("");  // no jump to what it calls
}

void sleeps_bad() {
  std::string name(100, 'x');
  nap(3);
  reads(reinterpret_cast<const long*>(name.data()));
}
void sleeps_good() {
  inline_string<103> name(std::string(100, 'x'));
  nap(3);
  reads(reinterpret_cast<const long*>(&name));
}

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    if (rank_me() != 0 || rank_count() == 1) return 0;
    const thread_options shares{.shared_stack = true};
    thread t = spawn(shares, bad ? sleeps_bad : sleeps_good);
    thread other = spawn(shares, sleeps_good);
    sleep_for(std::chrono::milliseconds(10));
    if (counters_now().images_out == 0) return 1;
    migrate(t, last());
    t.join();
    migrate(other, last());
    other.join();
    return 0;
  });
}
