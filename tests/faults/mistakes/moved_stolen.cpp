// SPDX-License-Identifier: Apache-2.0
// Threads that idle ranks take from one that has more: by load balance, without being asked.
#include <array>
#include <vector>

#include "moved.hpp"
using namespace sojourn;

void works_bad() {
  std::vector<long> factors{2, 3, 5};
  waits_for_handover();
  reads(factors.data());
}
void works_good() {
  std::array<long, 3> factors{2, 3, 5};
  waits_for_handover();
  reads(factors.data());
}

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    hand_over(balance_policy::steal, bad ? works_bad : works_good);
  });
}
