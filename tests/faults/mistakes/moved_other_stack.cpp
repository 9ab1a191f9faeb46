// SPDX-License-Identifier: Apache-2.0
// A thread that is moved with a pointer to a variable of the fiber that started it.
#include "moved.hpp"
using namespace sojourn;

long* total;  // set by the main fiber

void adds_bad() {
  long* sum = total;
  while (not_moved()) yield();
  reads(sum);
}
void adds_good() {
  long sum = *total;
  while (not_moved()) yield();
  reads(&sum);
}

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    if (rank_me() != 0 || rank_count() == 1) return;
    long mine = 0;
    total = &mine;
    thread t = spawn(bad ? adds_bad : adds_good);
    yield();
    migrate(t, last());
    t.join();
  });
}
