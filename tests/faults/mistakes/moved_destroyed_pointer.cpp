// SPDX-License-Identifier: Apache-2.0
// A thread that is moved with a plain pointer to an object that was destroyed.
#include "moved.hpp"
using namespace sojourn;

void sums_bad() {
  auto own = make<long>(0, 7L);
  long* mine = own.local();
  destroy(own);
  while (not_moved()) yield();
  asm volatile("" : : "r"(mine));
}
void sums_good() {
  auto own = make<long>(0, 7L);
  long* mine = own.local();
  reads(mine);
  destroy(own);
  mine = nullptr;
  while (not_moved()) yield();
  asm volatile("" : : "r"(mine));
}

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    if (rank_me() != 0 || rank_count() == 1) return;
    thread t = spawn(bad ? sums_bad : sums_good);
    yield();
    migrate(t, last());
    t.join();
  });
}
