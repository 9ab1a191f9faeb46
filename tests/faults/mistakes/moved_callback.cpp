// SPDX-License-Identifier: Apache-2.0
// A thread that is moved while a library runs a function of it.
#include <cstdlib>

#include "moved.hpp"
using namespace sojourn;

int compares(const void* a, const void* b) {
  while (not_moved()) yield();
  return static_cast<int>(*static_cast<const long*>(a) - *static_cast<const long*>(b));
}

void sorts_bad() {
  long values[2] = {5, 3};
  std::qsort(values, 2, sizeof values[0], compares);
  reads(values);
}
void sorts_good() {
  long values[2] = {5, 3};
  while (not_moved()) yield();
  std::qsort(values, 2, sizeof values[0], compares);
  reads(values);
}

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    if (rank_me() != 0 || rank_count() == 1) return;
    thread t = spawn(bad ? sorts_bad : sorts_good);
    yield();
    migrate(t, last());
    t.join();
  });
}
