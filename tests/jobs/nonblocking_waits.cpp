// SPDX-License-Identifier: Apache-2.0
// A function in a bundle breaks its promise not to wait: behind it in the run are others, which
// would be called twice if another took over.
#include "check.hpp"

using namespace sojourn;

namespace {
void give_way(int) { yield(); }
}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    finish([] {
      aggregated here;
      for (int i = 0; i < 10; ++i) {
        rpc_ff((rank_me() + 1) % rank_count(), nonblocking([](int n) { give_way(n); }), i);
      }
    });
  });
}
