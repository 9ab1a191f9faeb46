// SPDX-License-Identifier: Apache-2.0
#include "em3d/kernel/graph.hpp"

#include <algorithm>
#include <cmath>

#include "common/cpu_clock.hpp"
#include "common/random.hpp"

namespace apps::em3d {
namespace {

std::uint64_t as_64(int number) { return static_cast<std::uint64_t>(number); }

std::uint32_t first_at(const settings& s, int ranks, int rank) {
  return static_cast<std::uint32_t>(std::uint64_t{s.nodes / 2} * as_64(rank) / as_64(ranks));
}

/// Weights are so small that values stay within some e^4 of the first ones over all steps: no value
/// vanishes or overflows, and each step's values matter for the result as much as the last one's.
double greatest_weight(const settings& s) {
  return 4.0 / std::max(s.all_steps(), 4u) * 2 / s.degree;
}

/// One node's stream of random numbers.
random_source stream(const settings& s, kind k, std::uint32_t node) {
  return random_source(mix64((std::uint64_t{s.seed} << 33) + (std::uint64_t{k} << 32) + node));
}

/// The first value of a node and its edges: edge(weight, neighbour), in order.
template <class Edge>
double make_node(const settings& s, int ranks, int rank, kind k, std::uint32_t node, Edge edge) {
  random_source random = stream(s, k, node);
  const double first = random.fraction();
  const double most = greatest_weight(s);
  for (std::uint32_t i = 0; i < s.degree; ++i) {
    std::uint32_t owner = static_cast<std::uint32_t>(rank);
    if (ranks > 1 && random.below(100) < s.remote) {
      owner = static_cast<std::uint32_t>((as_64(rank) + 1 + random.below(as_64(ranks) - 1)) %
                                         as_64(ranks));
    }
    const auto here = count_at(s, ranks, static_cast<int>(owner));
    const place neighbour{owner, static_cast<std::uint32_t>(random.below(here))};
    edge(random.fraction() * most, neighbour);
  }
  return first;
}

}  // namespace

std::uint32_t count_at(const settings& s, int ranks, int rank) {
  return first_at(s, ranks, rank + 1) - first_at(s, ranks, rank);
}

part make_part(const settings& s, int ranks, int rank, kind k) {
  part p;
  p.nodes.resize(count_at(s, ranks, rank));
  p.weights.reserve(p.nodes.size() * s.degree);
  p.neighbours.reserve(p.nodes.size() * s.degree);
  std::uint32_t number = first_at(s, ranks, rank);
  for (node& n : p.nodes) {
    n.value = make_node(s, ranks, rank, k, number++, [&](double weight, place neighbour) {
      p.weights.push_back(weight);
      p.neighbours.push_back(neighbour);
    });
  }
  return p;
}

namespace {

/// The places of kind `k` that `rank` needs, of each rank: sorted, each once.
std::vector<std::vector<std::uint32_t>> wanted_by(const settings& s, int ranks, int rank, kind k) {
  std::vector<std::vector<std::uint32_t>> wanted(static_cast<std::size_t>(ranks));
  for (const place& p : make_part(s, ranks, rank, other(k)).neighbours) {
    if (p.rank != static_cast<std::uint32_t>(rank)) wanted[p.rank].push_back(p.index);
  }
  for (auto& places : wanted) {
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
  }
  return wanted;
}

}  // namespace

exchange make_exchange(const settings& s, int ranks, int rank, kind k) {
  exchange x;
  const auto me = static_cast<std::size_t>(rank);
  x.wanted = wanted_by(s, ranks, rank, k);
  x.first_ghost.push_back(0);
  for (const auto& places : x.wanted) {
    x.first_ghost.push_back(x.first_ghost.back() + static_cast<std::uint32_t>(places.size()));
  }
  const std::uint32_t own = count_at(s, ranks, rank);
  for (const place& p : make_part(s, ranks, rank, other(k)).neighbours) {
    if (p.rank == me) {
      x.sources.push_back(p.index);
      continue;
    }
    const auto& places = x.wanted[p.rank];
    const auto at = std::ranges::lower_bound(places, p.index) - places.begin();
    x.sources.push_back(own + x.first_ghost[p.rank] + static_cast<std::uint32_t>(at));
  }
  for (int r = 0; r < ranks; ++r) {
    auto theirs = r == rank ? std::vector<std::vector<std::uint32_t>>(x.wanted.size())
                            : wanted_by(s, ranks, r, k);
    std::uint32_t before = 0;
    for (std::size_t owner = 0; owner < me; ++owner) {
      before += static_cast<std::uint32_t>(theirs[owner].size());
    }
    x.given_at.push_back(before);
    x.given.push_back(std::move(theirs[me]));
  }
  return x;
}

void update_here(std::span<node> nodes, const std::vector<double>& weights, std::uint32_t degree,
                 const std::vector<std::uint32_t>& sources, const node* values) {
  const std::uint32_t* from = sources.data();
  update_all(nodes, weights, degree, [=](std::size_t edge) { return values[from[edge]].value; });
}

values_of_rank compute_alone(const settings& s, int ranks, int rank) {
  std::array<std::vector<node>, 2> nodes;
  std::array<std::vector<double>, 2> weights;
  std::array<std::vector<std::uint32_t>, 2> sources;
  for (const kind k : {e, h}) {
    for (int r = 0; r < ranks; ++r) {
      const part p = make_part(s, ranks, r, k);
      nodes[k].insert(nodes[k].end(), p.nodes.begin(), p.nodes.end());
      weights[k].insert(weights[k].end(), p.weights.begin(), p.weights.end());
      for (const place& n : p.neighbours) {
        sources[k].push_back(first_at(s, ranks, static_cast<int>(n.rank)) + n.index);
      }
    }
  }
  for (std::uint32_t step = 0; step < s.all_steps(); ++step) {
    for (const kind k : {e, h}) {
      update_here(nodes[k], weights[k], s.degree, sources[k], nodes[other(k)].data());
    }
  }
  values_of_rank values;
  for (const kind k : {e, h}) {
    for (std::uint32_t i = first_at(s, ranks, rank); i < first_at(s, ranks, rank + 1); ++i) {
      values[k].push_back(nodes[k][i].value);
    }
  }
  return values;
}

std::string difference(const values_of_rank& found, const values_of_rank& wanted) {
  // The order of every sum is the same, so only a compiler's choice of instructions may differ.
  constexpr double tolerance = 1e-12;
  for (const kind k : {e, h}) {
    if (found[k].size() != wanted[k].size()) return "the number of nodes differs";
    for (std::size_t i = 0; i < found[k].size(); ++i) {
      const double error = std::abs(found[k][i] - wanted[k][i]);
      if (!(error <= tolerance * std::abs(wanted[k][i]))) {
        return std::string(k == e ? "E" : "H") + " node " + std::to_string(i) + " has the value " +
               std::to_string(found[k][i]) + ", but one loop computes " +
               std::to_string(wanted[k][i]);
      }
    }
  }
  return "";
}

double seconds_alone(const settings& s, int ranks, int rank) {
  std::array<part, 2> parts{make_part(s, ranks, rank, e), make_part(s, ranks, rank, h)};
  std::array<exchange, 2> from{make_exchange(s, ranks, rank, e), make_exchange(s, ranks, rank, h)};
  for (const kind k : {e, h}) parts[k].nodes.resize(parts[k].nodes.size() + from[k].ghosts());
  const std::uint32_t own = count_at(s, ranks, rank);
  double least = 1e300;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const double start = cpu_seconds_now();
    for (std::uint32_t step = 0; step < s.steps; ++step) {
      for (const kind k : {e, h}) {
        update_here(std::span(parts[k].nodes).first(own), parts[k].weights, s.degree,
                    from[other(k)].sources, parts[other(k)].nodes.data());
      }
    }
    least = std::min(least, cpu_seconds_now() - start);
  }
  return least;
}

}  // namespace apps::em3d
