// SPDX-License-Identifier: Apache-2.0
// An 8×8 bitonic counting network: many requesters draw 0, 1, 2, … each number once, without one
// counter that all of them would queue at. A request walks through six balancers to one of eight
// counters; each of them is an object on some rank.
// Source: Aspnes, Herlihy and Shavit, "Counting networks and multi-processor coordination"
// (STOC 1991); as an experiment: Hsieh, Wang and Weihl, §4.1.
#pragma once

#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdint>
#include <string>

#include "common/measure.hpp"
#include "counting_network/wiring.hpp"

namespace apps {

/// Where a wire of the network ends: hands out every eighth number, beginning with its own place.
class output_counter {
 public:
  output_counter(std::uint64_t first, std::uint64_t step) : next_(first), step_(step) {}

  std::uint64_t take();
  /// How many numbers it handed out.
  std::uint64_t taken() const { return taken_; }

 private:
  std::uint64_t next_;
  std::uint64_t step_;
  std::uint64_t taken_ = 0;
};

/// Sends requests alternately to its two outputs.
class balancer {
 public:
  /// One of the two is set: the next balancer, or the counter at the end of the wire.
  struct output {
    sojourn::global_ptr<balancer> next;
    sojourn::global_ptr<output_counter> counter;
  };

  void connect(output top, output bottom) { outputs_ = {top, bottom}; }
  /// The way the next request goes.
  output traverse();

 private:
  std::array<output, 2> outputs_;
  bool bottom_next_ = false;
};

/// The network. A plain value: it travels, and every copy means the same network.
class counting_network {
 public:
  static constexpr int width = wiring::width;
  static constexpr int stages = wiring::stage_count;
  static constexpr int balancers = stages * width / 2;

  /// Makes the objects, balancer b on rank b mod rank_count() and the counters likewise. One rank
  /// calls it and hands the network to the others. Suspends.
  static counting_network create();
  /// Requires: nobody uses it any more. Suspends.
  void destroy() const;

  /// The next number; requests enter at one of eight wires. Each call is an activation of its own.
  /// Suspends.
  std::uint64_t take(int wire, sojourn::via how) const;

  /// How many numbers each counter handed out. While nobody draws, they have the step property:
  /// each is as large as the one after it, or larger by one.
  std::array<std::uint64_t, width> counts() const;

 private:
  std::array<sojourn::global_ptr<balancer>, balancers> balancers_;
  std::array<sojourn::global_ptr<output_counter>, width> counters_;
  std::array<sojourn::global_ptr<balancer>, width> entries_;
};

/// An experiment on a fresh network.
struct counting_options {
  int requesters = 16;             ///< In the whole job, spread over the ranks.
  std::uint64_t requests = 20000;  ///< Of all requesters together.
  std::uint64_t think_cycles = 0;  ///< Between two requests of one requester.
  sojourn::via how = sojourn::via::migrate;
  bool in_shared_memory = false;  ///< In place of objects, which `how` then is not about.
};

/// The same on every rank.
struct counting_result {
  figures measured;
  std::string wrong;  ///< With the numbers handed out; empty when nothing is.
};

/// Makes a network, draws, checks that the numbers were exactly 0 … requests-1, each once, and that
/// the counters have the step property; destroys the network. Collective. Suspends.
counting_result run_counting(const counting_options& options);

}  // namespace apps
