// SPDX-License-Identifier: Apache-2.0
// The programs that the model runs: a few threads on a few ranks, which load from and store to the
// words of two pages. Locks and barriers keep them from races, which only `seq` allows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "rules.hpp"

namespace page_model {

constexpr int ranks_max = 3;
constexpr int threads_max = 6;
constexpr int pages = 2;
constexpr int words = 2;  // in a page
constexpr int variables = pages * words;
constexpr int locks = 2;

constexpr int page_of(int variable) { return variable / words; }
constexpr int word_of(int variable) { return variable % words; }

enum class operation : std::uint8_t {
  load,
  store,
  increment,
  flip,  ///< Changes the lowest bit, so that an old value may come back.
  increment_two,
  lock,
  unlock,
  barrier,
  move,  ///< The thread continues on another rank.
  end
};
struct instruction {
  operation what = operation::end;
  int operand = 0;  ///< A variable, a lock, or the rank to move to.
  int second = 0;   ///< The value to store, or the second variable of `increment_two`.
};
using instructions = std::vector<instruction>;

struct program {
  protocol how = protocol::lmw;
  int ranks = 2;
  int threads = 2;

  // What an implementation of `lmw` may choose. All combinations must be right.
  bool collects = false;          ///< Diffs are collected (G1) …
  int barriers_a_collection = 2;  ///< … at every barrier of so many.
  bool has_exclusive = true;      ///< Pages may become exclusive (X2).
  bool readers_count = false;     ///< Pages that other ranks read do not become so (X2).
  bool pages_stick = false;       ///< Pages that are often written stay writable (X5).
  bool pages_are_claimed =
      false;  ///< An untouched page goes to the first rank that stores to it (X4).
  bool answers_with_pages =
      false;  ///< A request for several diffs is answered with the page (L12).
  // What an implementation of any protocol may choose.
  bool departs_in_chain = false;  ///< Each rank passes departures on to the next one.
  bool has_fair_locks = false;    ///< A lock may leave a rank whose threads want it (T1).

  std::array<int, threads_max> rank{};    ///< Where each thread begins.
  std::array<bool, threads_max> meets{};  ///< Whether it takes part in barriers.
  std::array<instructions, threads_max> code;

  bool has_barriers() const;
  int meeting() const;  ///< The number of threads that take part in barriers.
};

/// The program as text of several lines.
std::string text_of(const program& p);

/// A program that depends on the protocol and the seed alone.
program random_program(protocol how, std::uint64_t seed);
/// The same, but so small that all of its interleavings can be tried.
program small_program(protocol how, std::uint64_t seed);
/// Programs that were each written to bring about one situation, under all combinations of what an
/// implementation may choose.
std::vector<program> pointed_programs(protocol how);

}  // namespace page_model
