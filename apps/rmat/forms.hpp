// SPDX-License-Identifier: Apache-2.0
// Graphs in containers: a breadth-first search, components, and triangles.
#pragma once

#include <sojourn/containers/dist_graph.hpp>
#include <sojourn/sojourn.hpp>

#include <cstdint>

#include "rmat/kernel/rmat.hpp"

namespace apps::rmat {

using graph_type = sojourn::dist_graph<>;

/// The same on every rank.
struct result {
  summary all;               ///< What was found for the vertices.
  std::uint64_t number = 0;  ///< Of vertices reached, components or triangles.
  double seconds = 0;
  sojourn::counters spent;  ///< Of all ranks together.
};

/// Collective, as all below. Suspends.
graph_type make_graph(const settings& chosen);

/// A breadth-first search by levels.
result run_search(const graph_type& graph, vertex root);
/// A dist_disjoint_set, which each rank fills with its edges.
result run_components(const graph_type& graph);
/// Each vertex sends the neighbours behind it to the ranks of these, which compare.
result run_triangles(const graph_type& graph);

}  // namespace apps::rmat
