// SPDX-License-Identifier: Apache-2.0
//
// What Hsieh, Wang and Weihl give in Tables 1 to 4 and in the text of Computation Migration:
// Enhancing Locality for Distributed-Memory Parallel Systems (1993), of a simulated machine.
#pragma once

#include <array>
#include <vector>

namespace bench::in_paper {

/// 0 stands for what the paper does not give.
struct scheme {
  const char* name;
  const char* row;  ///< Ours that stands beside it; empty: none does, as we have no such hardware.
  double throughput;  ///< Operations each 1,000 cycles.
  double bandwidth;   ///< Words of 4 bytes each 10 cycles.
};

struct btree_table {
  const char* title;
  int think;
  int fanout;
  std::vector<scheme> schemes;
};
extern const std::array<btree_table, 4> btree_tables;

/// Of Figures 2 and 3 there are no numbers, but sentences.
extern const char* const of_figures_2_and_3;

}  // namespace bench::in_paper
