// SPDX-License-Identifier: Apache-2.0
// Random programs of loads, stores, locks, barriers and moves, and of flags, atomics, conditions,
// counted barriers and threads that begin and end in between. What every load must see is known:
// there are no data races, but on pages whose protocol promises sequential consistency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/pages/page.hpp"

namespace simulated {

using sojourn::detail::pages::protocol_kind;

enum class operation : std::uint8_t {
  load,
  store,
  increment,
  flip,
  both,  ///< One instruction that increments two variables.
  copy,  ///< One instruction that loads a variable and stores to another.
  // What the system does with a page that a thread has pinned: it cannot wait, and does not.
  system_load,
  system_store,
  lock,
  unlock,
  barrier,
  move,
  pin,    ///< The pages of a variable up to that of another, to load or to store.
  unpin,  ///< All that the thread has pinned.
  set,    ///< A flag.
  clear,
  await,       ///< Until it is set.
  add,         ///< 1 to an atomic; who is not the last of `other` to do so leaves out `skips`.
  take,        ///< What `other` threads have added to an atomic: 0 is left.
  arrive,      ///< At a barrier of `other` threads.
  prepare,     ///< What others wait for: under the mutex that guards it.
  notify_one,  ///< Of that.
  notify_all,
  wait,    ///< Until it is prepared. With the mutex `other`.
  create,  ///< A thread that takes part in barriers from now on.
  here,    ///< Its first instruction.
  gone     ///< Takes no part any more: the last one.
};

struct instruction {
  operation what;
  std::uint16_t variable = 0;  ///< Or lock, or the rank to move to.
  std::uint16_t other = 0;     ///< The second variable; or the value that is stored.
  std::uint16_t skips = 0;
  bool stores = false;  ///< Of pins.
};

struct script {
  int rank = 0;             ///< Where the thread begins.
  bool meets = true;        ///< Takes part in barriers.
  bool is_created = false;  ///< By another one.
  bool is_gone = false;     ///< Has ended before the others.
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
  /// How often, between two barriers, threads order what they do by other means than locks.
  int events = 0;
  int report = 0;  ///< 1: ranks look for data races, as for --shared-report.
  int pins = 0;    ///< 1: threads pin pages.
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
  int fan_out = 16;  ///< Of departures.
  std::size_t collect_bytes = SIZE_MAX;
  bool report = false;                   ///< See program_sizes.
  bool pins = false;                     ///< The same.
  std::uint64_t rounds = 1;              ///< So often each thread runs its code.
  std::vector<protocol_kind> protocols;  ///< Of each page.
  std::vector<script> threads;
  int objects = 0;  ///< Flags, atomics, conditions and counted barriers.

  int variables() const { return pages * variables_of_page; }
  int page_of(int variable) const { return variable / variables_of_page; }
  protocol_kind protocol_of(int page) const { return protocols[static_cast<std::size_t>(page)]; }
};

const char* name_of(protocol_kind kind);

program random_program(std::uint64_t seed, const program_sizes& sizes);

/// Each rank stores a word to a page of its own, and all meet.
program barrier_program(int ranks, int barriers);

/// Threads of all ranks take the same locks in turn, and nobody ever meets at a barrier.
program lock_only_program(protocol_kind kind, std::uint64_t rounds);

/// The program in words.
std::string text_of(const program& p);

}  // namespace simulated
