// SPDX-License-Identifier: Apache-2.0
// Threads that a rank hands to neighbours that have fewer: by load balance, without being asked.
#include "moved.hpp"
using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    hand_over(balance_policy::diffuse, bad ? works_bad : works_good);
  });
}
