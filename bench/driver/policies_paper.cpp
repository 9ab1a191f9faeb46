// SPDX-License-Identifier: Apache-2.0
#include "driver/policies_paper.hpp"

namespace bench::in_paper {

const std::array<btree_table, 4> btree_tables{{
    {"Tables 1 and 2: no think time, fan-out 100",
     0,
     100,
     {{"SM", "shared", 1.837, 75},
      {"RPC", "rpc", 0.3828, 7.3},
      {"RPC w/HW", "", 0.5133, 9.9},
      {"RPC w/repl.", "rpc + replicated root", 0.6060, 7.0},
      {"RPC w/repl. & HW", "", 0.7830, 9.3},
      {"CP", "migrate", 0.8018, 3.5},
      {"CP w/hardware", "", 0.9570, 4.3},
      {"CP w/repl.", "migrate + replicated root", 1.155, 3.8},
      {"CP w/repl. & HW", "", 1.341, 3.9}}},
    {"Tables 3 and 4: think time 10,000 cycles, fan-out 100",
     10'000,
     100,
     {{"SM", "shared", 1.071, 16},
      {"CP w/repl.", "migrate + replicated root", 0.9816, 2.5},
      {"CP w/repl. & HW", "", 1.053, 2.7}}},
    {"In the text: no think time, fan-out 10",
     0,
     10,
     {{"SM", "shared", 2.427, 0}, {"CP w/repl.", "migrate + replicated root", 2.076, 0}}},
    {"Not in the paper: think time 10,000 cycles, fan-out 10", 10'000, 10, {}},
}};

const char* const of_figures_2_and_3 =
    "The paper draws 8 to 64 requesters on as many processors and gives no numbers. Its text: "
    "without think\ntime, migration with hardware support can be faster than shared memory, 12% of "
    "whose accesses hit, and\nneeds the least bandwidth, shared memory the most; with 10,000 "
    "cycles shared memory is faster and needs\nless bandwidth than RPC, and migration less than "
    "half of either.";

}  // namespace bench::in_paper
