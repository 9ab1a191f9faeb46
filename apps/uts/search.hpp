// SPDX-License-Identifier: Apache-2.0
// Searches a tree with threads, on as many ranks as load balance brings them to.
//
// A thread begins with a few open nodes. It searches `grain` nodes depth first; what is open then,
// it gives to new threads, at least two, the nodes nearest to the root first: those are the first
// that load balance hands over, and probably the largest. So a large part of the tree becomes many
// threads, and a small one is done by the thread that meets it. Threads know nothing of ranks.
#pragma once

#include <sojourn/sojourn.hpp>

#include <cstdint>

#include "uts/tree.hpp"

namespace apps::uts {

struct search_options {
  uts::tree tree;
  std::uint32_t grain = 250;  ///< Nodes that a thread searches: some 30 us.
};

/// The same on every rank.
struct search_result {
  tally found;
  std::uint64_t threads = 0;
  double seconds = 0;
  std::uint64_t busiest = 0;  ///< Nodes of the rank that searched most.
  sojourn::counters spent;    ///< Of all ranks together.
};

/// Collective. Suspends.
search_result search(const search_options& options);

/// The same by a loop, on this rank alone.
tally search_alone(const tree& t);

/// That loop on rank 0, timed; the others wait. Collective. Suspends.
search_result search_by_loop(const tree& t);

}  // namespace apps::uts
