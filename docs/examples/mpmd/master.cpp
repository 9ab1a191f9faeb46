// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "worker.hpp"

using namespace sojourn;

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    auto total = make<tally_interface::create>(1, 0L);  // constructs in the worker on rank 1
    for (rank_t worker = 1; worker < rank_count(); ++worker) {
      total.call<tally_interface::add>(rpc(worker, square(), worker).get());
    }
    std::printf("the sum of the squares is %ld\n", total.call<tally_interface::value>());
    total.call<tally_interface::destroy>();
  });
}
