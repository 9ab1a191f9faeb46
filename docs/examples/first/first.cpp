// SPDX-License-Identifier: Apache-2.0
// The first program of docs/getting_started.md.
#include <sojourn/sojourn.hpp>

#include <cstdio>
#include <functional>

int main(int argc, char** argv) {
  return sojourn::run(argc, argv, [] {
    int me = sojourn::rank_me();
    int sum = sojourn::reduce(me, std::plus<>{});
    if (me == 0) std::printf("%d ranks, whose numbers add up to %d\n", sojourn::rank_count(), sum);
  });
}
