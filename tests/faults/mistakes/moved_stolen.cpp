// SPDX-License-Identifier: Apache-2.0
// Threads that idle ranks take from one that has more: by load balance, without being asked.
#include "moved.hpp"
using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [bad = is_bad(argc, argv)] {
    hand_over(balance_policy::steal, bad ? works_bad : works_good);
  });
}
