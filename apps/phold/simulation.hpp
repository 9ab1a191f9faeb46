// SPDX-License-Identifier: Apache-2.0
// PHOLD, the usual load of parallel discrete-event simulators, in the process-oriented way: each
// logical process is a thread, written as a loop over its events, and takes those that are pending
// along wherever it moves. It handles an event by computing for a while and sending another to some
// process, at least the lookahead later. So all events within a lookahead of the earliest one can
// be handled at once, on all ranks (conservative time windows), and nothing that comes later
// changes what they do: the result is the same on any number of ranks, and under any policy of load
// balance.
// Source: Fujimoto, Performance of Time Warp under Synthetic Workloads (1990); windows:
// Lubachevsky, Efficient Distributed Event-Driven Simulations of Multiple-Loop Networks (1989);
// processes as threads that migrate: Sang and Rego (1993).
#pragma once

#include <sojourn/sojourn.hpp>

#include <cstdint>

namespace apps::phold {

struct settings {
  std::uint32_t processes = 64;
  std::uint32_t events = 16;  ///< Of each process in the beginning; as many are there all the time.
  double lookahead = 1;       ///< An event causes another at least so much later …
  double mean_delay = 1;      ///< … and so much more on average, exponentially distributed.
  double end = 100;           ///< Events at this time and later are not handled.
  std::uint32_t work = 200;   ///< Rounds of computation for an event, some 5 ns each.
  double remote = 0.9;        ///< Share of the events that go to another process.
  std::uint32_t seed = 1;
  bool spread = true;     ///< The processes begin on the ranks in turn; otherwise all on rank 0.
  bool affinity = false;  ///< Each prefers the rank where it gets its mail.
};

/// The same on every rank.
struct result {
  std::uint64_t events = 0;    ///< Handled.
  std::uint64_t checksum = 0;  ///< Of who handled which, in which order.
  std::uint64_t windows = 0;
  double seconds = 0;
  sojourn::counters spent;  ///< Of all ranks together.
};

/// Collective. Suspends.
result simulate(const settings& chosen);

/// The same by a loop with one list of events, on this rank alone: `events` and `checksum`.
result simulate_alone(const settings& chosen);

}  // namespace apps::phold
