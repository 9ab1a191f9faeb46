// SPDX-License-Identifier: Apache-2.0
// EM3D: electromagnetic waves on an irregular bipartite graph. E nodes depend on H nodes and the
// other way round; a step updates all E nodes from their neighbours, and then all H nodes. The same
// graph on any form of the program: it is made of hashes, so each rank can tell what any other has.
// Source: Culler et al., Parallel Programming in Split-C (1993); MRPC §5.2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace apps::em3d {

struct settings {
  std::uint32_t nodes = 800;   ///< Half of them E, half H, spread evenly over the ranks.
  std::uint32_t degree = 20;   ///< Neighbours that a node depends on.
  std::uint32_t remote = 100;  ///< Percent of them that other ranks have; none with one rank.
  std::uint32_t steps = 100;
  std::uint32_t warm_up = 10;  ///< Further steps before those, which are not measured.
  std::uint32_t seed = 1;
  std::string variant = "base";

  std::uint32_t all_steps() const { return warm_up + steps; }
};

enum kind : std::uint32_t { e, h };
constexpr kind other(kind k) { return k == e ? h : e; }

/// A node as other ranks see it.
struct node {
  double value = 0;
  double read() const { return value; }
};

/// A node by its owner and its place there.
struct place {
  std::uint32_t rank;
  std::uint32_t index;
  friend auto operator<=>(const place&, const place&) = default;
};

/// How many nodes of a kind a rank has.
std::uint32_t count_at(const settings& s, int ranks, int rank);

/// The nodes of one kind that a rank has: `degree` edges each, one node's after the other's.
struct part {
  std::vector<node> nodes;  ///< With their first values.
  std::vector<double> weights;
  std::vector<place> neighbours;
};
part make_part(const settings& s, int ranks, int rank, kind k);

/// What a rank needs of the nodes of one kind that others have (its ghosts), and what others need
/// of its own. Each is there once, in the order of owners and places. Where every rank's list
/// comes from the same graph, sender and receiver have the same order.
struct exchange {
  std::vector<std::uint32_t> sources;  ///< For each edge: a node here, or count + its ghost.
  std::vector<std::vector<std::uint32_t>> wanted;  ///< Of each rank: its places, for my ghosts.
  std::vector<std::uint32_t> first_ghost;          ///< Of each rank; one more at the end.
  std::vector<std::vector<std::uint32_t>> given;   ///< To each rank: my places, for its ghosts.
  std::vector<std::uint32_t> given_at;             ///< Where my nodes begin among its ghosts.

  std::uint32_t ghosts() const { return first_ghost.back(); }
};
/// For the nodes of kind `k` as `other(k)`'s sources.
exchange make_exchange(const settings& s, int ranks, int rank, kind k);

/// The update of one node: less what its neighbours' values weigh. `read(edge)` is the neighbour's.
template <class Read>
inline void update_node(node& n, const double* weights, std::size_t first_edge, std::size_t degree,
                        Read read) {
  double sum = 0;
  for (std::size_t edge = first_edge; edge < first_edge + degree; ++edge) {
    sum += weights[edge] * read(edge);
  }
  n.value -= sum;
}

/// All nodes of a kind that a rank has.
template <class Read>
inline void update_all(std::span<node> nodes, const std::vector<double>& weights,
                       std::uint32_t degree, Read read) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    update_node(nodes[i], weights.data(), i * degree, degree, read);
  }
}

/// The same where all values lie in one array, which `sources` (exchange) are places of.
void update_here(std::span<node> nodes, const std::vector<double>& weights, std::uint32_t degree,
                 const std::vector<std::uint32_t>& sources, const node* values);

/// The values of this rank's nodes, by kind.
using values_of_rank = std::array<std::vector<double>, 2>;

/// After all steps, by one loop over the whole graph.
values_of_rank compute_alone(const settings& s, int ranks, int rank);

/// Empty, or what is wrong with `found`, in a sentence.
std::string difference(const values_of_rank& found, const values_of_rank& wanted);

/// Seconds that the computing of `steps` steps takes alone, on this rank's nodes and ghosts as they
/// lie in memory: the run without its communication. The least of three.
double seconds_alone(const settings& s, int ranks, int rank);

}  // namespace apps::em3d
