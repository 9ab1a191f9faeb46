// SPDX-License-Identifier: Apache-2.0
// A library that uses the runtime of the program that loads it.
#include <sojourn/sojourn.hpp>

extern "C" long ask_of_plug_in(int rank, long x) {
  return sojourn::rpc(rank, [](long y) { return 100 * y + sojourn::rank_me(); }, x).get();
}
