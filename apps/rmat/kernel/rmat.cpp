// SPDX-License-Identifier: Apache-2.0
#include "rmat/kernel/rmat.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace apps::rmat {
namespace {

/// Gives each number below 2^scale another one.
std::uint64_t shuffled(std::uint64_t v, unsigned scale) {
  const std::uint64_t mask = (std::uint64_t{1} << scale) - 1;
  const unsigned half = (scale + 1) / 2;
  for (const std::uint64_t odd : {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u}) {
    v = v * odd & mask;
    v ^= v >> half;
  }
  return v;
}

}  // namespace

edge edge_of(const settings& s, std::uint64_t i) {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t random = 0;
  for (unsigned level = 0; level < s.scale; ++level) {
    // 16 random bits choose one of four quarters: 0.57, 0.19, 0.19 and 0.05 of all edges.
    random = level % 4 == 0 ? mix64(i << 4 | level / 4) : random >> 16;
    const std::uint64_t r = random & 0xffff;
    from = from << 1 | (r >= 49807 ? 1 : 0);
    to = to << 1 | ((r >= 37356 && r < 49807) || r >= 62259 ? 1 : 0);
  }
  return {static_cast<vertex>(shuffled(from, s.scale)), static_cast<vertex>(shuffled(to, s.scale))};
}

vertex hub_of(const settings& s) { return static_cast<vertex>(shuffled(0, s.scale)); }

summary::summary(std::span<const std::uint32_t> values) {
  for (vertex v = 0; v < values.size(); ++v)
    if (values[v] != far) add(v, values[v]);
}

serial_graph::serial_graph(const settings& s) : first_(vertices_of(s) + 1) {
  std::vector<edge> edges(edges_of(s));
  for (std::uint64_t i = 0; i < edges.size(); ++i) {
    edges[i] = edge_of(s, i);
    ++first_[edges[i].from + 1];
    ++first_[edges[i].to + 1];
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  ends_.resize(2 * edges.size());
  for (const edge& e : edges) {
    ends_[next[e.from]++] = e.to;
    ends_[next[e.to]++] = e.from;
  }
  std::size_t kept = 0;
  for (std::size_t v = 0; v < size(); ++v) {
    const std::size_t begin = v == 0 ? 0 : next[v - 1];  // where the row began
    const auto row = ends_.begin() + static_cast<std::ptrdiff_t>(begin);
    auto end = ends_.begin() + static_cast<std::ptrdiff_t>(next[v]);
    std::sort(row, end);
    end = std::remove(row, std::unique(row, end), static_cast<vertex>(v));
    first_[v] = kept;
    kept = static_cast<std::size_t>(
        std::move(row, end, ends_.begin() + static_cast<std::ptrdiff_t>(kept)) - ends_.begin());
  }
  first_.back() = kept;
  ends_.resize(kept);
  ends_.shrink_to_fit();
}

std::vector<std::uint32_t> search_alone(const serial_graph& graph, vertex root) {
  std::vector<std::uint32_t> depth(graph.size(), far);
  marks reached(graph.size());
  std::vector<vertex> frontier{root};
  std::vector<vertex> next;
  reached.add(root);
  depth[root] = 0;
  for (std::uint32_t d = 1; !frontier.empty(); ++d) {
    next.clear();
    for (const vertex v : frontier)
      for (const vertex u : graph.row(v)) {
        if (reached.has(u)) continue;
        reached.add(u);
        depth[u] = d;
        next.push_back(u);
      }
    frontier.swap(next);
  }
  return depth;
}

std::vector<vertex> components_alone(const serial_graph& graph) {
  std::vector<vertex> parent(graph.size());
  std::iota(parent.begin(), parent.end(), vertex{0});
  // Rem's algorithm, as in dist_disjoint_set.
  for (vertex v = 0; v < graph.size(); ++v)
    for (const vertex u : graph.row(v)) {
      if (u >= v) break;
      vertex a = v;
      vertex b = u;
      while (parent[a] != parent[b]) {
        if (parent[a] < parent[b]) std::swap(a, b);
        const vertex above = std::exchange(parent[a], parent[b]);
        if (a == above) break;
        a = above;
      }
    }
  for (vertex v = 0; v < graph.size(); ++v) parent[v] = parent[parent[v]];
  return parent;
}

std::uint64_t triangles_alone(const serial_graph& graph) {
  std::vector<std::size_t> first(graph.size() + 1);
  std::vector<vertex> ends;
  ends.reserve(graph.arcs() / 2);
  for (vertex v = 0; v < graph.size(); ++v) {
    const std::size_t degree = graph.row(v).size();
    for (const vertex u : graph.row(v))
      if (comes_before(degree, v, graph.row(u).size(), u)) ends.push_back(u);
    first[v + 1] = ends.size();
  }
  const auto behind = [&](vertex v) {
    return std::span<const vertex>(ends).subspan(first[v], first[v + 1] - first[v]);
  };
  marks neighbours(graph.size());
  std::uint64_t triangles = 0;
  for (vertex v = 0; v < graph.size(); ++v) {
    for (const vertex u : behind(v)) neighbours.add(u);
    for (const vertex u : behind(v)) triangles += neighbours.count(behind(u));
    for (const vertex u : behind(v)) neighbours.remove(u);
  }
  return triangles;
}

}  // namespace apps::rmat
