// SPDX-License-Identifier: Apache-2.0
// Random programs of loads, stores, locks, barriers and moves, without data races: what every load
// must see is known.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace simulated {

enum class operation : std::uint8_t { load, store, increment, flip, lock, unlock, barrier, move };

struct instruction {
  operation what;
  std::uint16_t variable = 0;  ///< Or lock, or the rank to move to.
  std::uint8_t value = 0;      ///< That is stored.
};

struct script {
  int rank = 0;       ///< Where the thread begins.
  bool meets = true;  ///< Takes part in barriers.
  std::vector<instruction> code;
};

/// How large random programs are; each is between 1 and these.
struct program_sizes {
  int ranks = 3;
  int threads_of_rank = 2;
  int phases = 3;
  int steps = 4;
  int pages = 2;
  int variables_of_page = 2;
  int locks = 2;
};

struct program {
  std::uint64_t seed = 0;
  int ranks = 2;
  int pages = 2;
  int variables_of_page = 2;
  // Settings of the protocol.
  bool exclusive = true;
  bool sticking = false;
  bool claims = false;
  bool whole_pages = false;
  bool fair = false;  ///< Locks may go to other ranks before local waiters.
  int fetched_together = 1;
  std::size_t collect_bytes = SIZE_MAX;
  std::vector<script> threads;

  int variables() const { return pages * variables_of_page; }
};

program random_program(std::uint64_t seed, const program_sizes& sizes);

/// The program in words.
std::string text_of(const program& p);

}  // namespace simulated
