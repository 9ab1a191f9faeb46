// SPDX-License-Identifier: Apache-2.0
// What the programs moved_*.cpp share: threads that do not move themselves, but are moved. With the
// argument `bad` they have in their frames what must stay on its rank.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include <sojourn/sojourn.hpp>

inline bool is_bad(int argc, char** argv) { return argc > 1 && std::strcmp(argv[1], "bad") == 0; }
inline sojourn::rank_t last() { return sojourn::rank_count() - 1; }

/// True until the thread that asks has left rank 0. Where there is no other rank it stays.
inline bool not_moved() { return sojourn::rank_me() == 0 && sojourn::rank_count() > 1; }

/// Reads what the thread holds, so that the compiler keeps it until then.
inline void reads(const long* values) { asm volatile("" : : "r"(values), "m"(values[0])); }

inline bool any_was_handed_over = false;  // of rank 0

/// Starts many threads that run `body`, and has load balance hand some over once they have begun.
inline void hand_over(sojourn::balance_policy policy, void (*body)()) {
  std::vector<sojourn::thread> all;
  if (sojourn::rank_me() == 0) {
    for (int i = 0; i < 16; ++i) all.push_back(sojourn::spawn(body));
    for (int i = 0; i < 20; ++i) sojourn::yield();
  }
  sojourn::balance(policy);
  for (sojourn::thread t : all) t.join();
  sojourn::barrier();
}

/// Gives up its turn until one of them was; tells the others.
inline void waits_for_handover() {
  while (not_moved() && !any_was_handed_over) sojourn::yield();
  sojourn::rpc(0, [] { any_was_handed_over = true; }).get();
}

/// What is handed over, with a pointer to memory of its rank and without.
inline void works_bad() {
  std::vector<long> factors{2, 3, 5};
  waits_for_handover();
  reads(factors.data());
}
inline void works_good() {
  std::array<long, 3> factors{2, 3, 5};
  waits_for_handover();
  reads(factors.data());
}
