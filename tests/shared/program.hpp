// SPDX-License-Identifier: Apache-2.0
// Random programs of loads, stores, locks, barriers and moves. What every load must see is known:
// there are no data races, but on pages whose protocol promises sequential consistency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/page.hpp"

namespace simulated {

using sojourn::detail::pages::protocol_kind;

enum class operation : std::uint8_t {
  load,
  store,
  increment,
  flip,
  both,  ///< One instruction that increments two variables.
  copy,  ///< One instruction that loads a variable and stores to another.
  lock,
  unlock,
  barrier,
  move
};

struct instruction {
  operation what;
  std::uint16_t variable = 0;  ///< Or lock, or the rank to move to.
  std::uint16_t other = 0;     ///< The second variable; or the value that is stored.
};

struct script {
  int rank = 0;       ///< Where the thread begins.
  bool meets = true;  ///< Takes part in barriers.
  std::vector<instruction> code;
};

/// How large random programs are; what is random is between 1 and these.
struct program_sizes {
  std::optional<protocol_kind> protocol;  ///< Or each page has one of its own.
  int ranks = 3;
  int threads_of_rank = 2;
  int phases = 3;
  int steps = 4;
  int pages = 2;
  int variables_of_page = 2;
  int locks = 2;
  int report = 0;  ///< 1: ranks look for data races, as for --shared-report.
};

struct program {
  std::uint64_t seed = 0;
  int ranks = 2;
  int pages = 2;
  int variables_of_page = 2;
  std::size_t variable_bytes = 1;
  // Settings of the protocol.
  bool exclusive = true;
  bool sticking = false;
  bool claims = false;
  bool whole_pages = false;
  bool fair = false;  ///< Locks may go to other ranks before local waiters.
  int fetched_together = 1;
  std::size_t collect_bytes = SIZE_MAX;
  bool report = false;                   ///< See program_sizes.
  std::vector<protocol_kind> protocols;  ///< Of each page.
  std::vector<script> threads;

  int variables() const { return pages * variables_of_page; }
  int page_of(int variable) const { return variable / variables_of_page; }
  protocol_kind protocol_of(int page) const { return protocols[static_cast<std::size_t>(page)]; }
};

const char* name_of(protocol_kind kind);

program random_program(std::uint64_t seed, const program_sizes& sizes);

/// The program in words.
std::string text_of(const program& p);

}  // namespace simulated
