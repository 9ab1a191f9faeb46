// SPDX-License-Identifier: Apache-2.0
// A thread that is moved by the main fiber of its rank while it is ready.
#include <array>
#include <vector>

#include "moved.hpp"
using namespace sojourn;

void turns_bad() {
  std::vector<long> factors{2, 3, 5};  // its elements are malloc'd here
  while (not_moved()) yield();
  reads(factors.data());
}
void turns_good() {
  std::array<long, 3> factors{2, 3, 5};
  while (not_moved()) yield();
  reads(factors.data());
}

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    if (rank_me() != 0 || rank_count() == 1) return;
    thread t = spawn(bad ? turns_bad : turns_good);
    yield();
    migrate(t, last());
    t.join();
  });
}
