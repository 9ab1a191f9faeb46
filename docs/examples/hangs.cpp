// SPDX-License-Identifier: Apache-2.0
#include <sojourn/sojourn.hpp>
using namespace sojourn;

bool settling = false;

long settle() {
  settling = true;
  barrier();  // every rank settles together …
  return 1;
}

long ask_neighbour() { return rpc(1, settle).get(); }

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    if (rank_me() == 0) ask_neighbour();  // … but rank 0 waits here, and never comes to the barrier
    while (!settling) yield();
  });
}
