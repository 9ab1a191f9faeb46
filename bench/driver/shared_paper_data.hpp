// SPDX-License-Identifier: Apache-2.0
//
// What Thitikamol and Keleher give in Tables 1 to 3 and in the text of Per-Node Multi-Threading and
// Remote Latency: eight Alpha 2100 4/275 and an ATM switch. In the order of the_nine.
#pragma once

#include <array>
#include <cstddef>

namespace bench::in_paper {

inline constexpr std::array thread_counts{1, 2, 4, 8};

/// Table 1.
struct specifics {
  const char* sync;
  const char* input;
};
extern const std::array<specifics, 9> table_1;

/// Table 2, by application and number of threads: BW in KBytes, remote faults and locks,
/// overlapping faults and locks, contention for pages and locks, diffs created and used.
using lmw_row = std::array<int, 9>;
extern const std::array<std::array<lmw_row, 4>, 9> table_2;

/// Table 3: BW in KBytes, remote faults, lock messages, contention for pages, under LSW and SEQ.
using single_writer_row = std::array<int, 4>;
struct single_writer {
  single_writer_row lsw;
  single_writer_row seq;
};
extern const std::array<std::array<single_writer, 4>, 9> table_3;

/// What the text says of Figures 3, 5 and 6, of which it gives no numbers: the time with four
/// threads a node, as a part of that with one.
extern const std::array<const char*, 9> four_threads_lmw;
extern const std::array<const char*, 9> four_threads_lsw;
extern const std::array<const char*, 9> four_threads_seq;

/// §4.1, in microseconds.
struct costs {
  double two_hop_lock = 937;
  double three_hop_lock = 1382;
  double fault = 1100;
  double mprotect = 49;
  double signal = 98;
  double barrier_8 = 2470;
  double thread_switch = 8;
};
inline constexpr costs section_4_1{};

}  // namespace bench::in_paper
