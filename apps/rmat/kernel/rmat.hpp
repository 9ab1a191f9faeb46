// SPDX-License-Identifier: Apache-2.0
// Random graphs with few vertices of many neighbours, and what one process computes on them.
//
// Source: the R-MAT generator of Chakrabarti, Zhan and Faloutsos (2004), with the parameters and
// the shuffled vertices of Graph500.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/random.hpp"

namespace apps::rmat {

using vertex = std::uint32_t;

struct settings {
  unsigned scale = 16;   ///< 2^scale vertices.
  unsigned degree = 16;  ///< Edges for each vertex, before loops and repeated ones are left out.
  unsigned repeats = 3;
};
inline std::size_t vertices_of(const settings& s) { return std::size_t{1} << s.scale; }
inline std::uint64_t edges_of(const settings& s) { return std::uint64_t{s.degree} << s.scale; }

struct edge {
  vertex from;
  vertex to;
};
/// The i-th edge.
edge edge_of(const settings& s, std::uint64_t i);
/// The vertex that most edges are expected to lead to: where searches begin.
vertex hub_of(const settings& s);

/// What a search has found: of any order, and the same in all forms.
struct summary {
  std::uint64_t found = 0;
  std::uint64_t check = 0;

  summary() = default;
  summary(std::uint64_t n, std::uint64_t sum) : found(n), check(sum) {}
  /// Of a value for each vertex that is not `far`.
  explicit summary(std::span<const std::uint32_t> values);
  void add(vertex v, std::uint64_t value) {
    ++found;
    check += mix64(v) * (value + 1);
  }
  friend summary operator+(summary a, const summary& b) {
    return {a.found + b.found, a.check + b.check};
  }
  friend bool operator==(const summary&, const summary&) = default;
};

/// Both directions of each edge, without loops, and each only once; neighbours in order.
class serial_graph {
 public:
  explicit serial_graph(const settings& s);
  std::size_t size() const { return first_.size() - 1; }
  std::span<const vertex> row(vertex v) const {
    return std::span(ends_).subspan(first_[v], first_[v + 1] - first_[v]);
  }
  std::size_t arcs() const { return ends_.size(); }

 private:
  std::vector<std::size_t> first_;
  std::vector<vertex> ends_;
};

/// A vertex that a search does not reach.
inline constexpr std::uint32_t far = ~std::uint32_t{0};
/// How far each vertex is from `root`, by a breadth-first search.
std::vector<std::uint32_t> search_alone(const serial_graph& graph, vertex root);
/// The least vertex of each vertex's component.
std::vector<vertex> components_alone(const serial_graph& graph);
std::uint64_t triangles_alone(const serial_graph& graph);

/// A set of vertices, which can be emptied quickly by whoever knows what is in it.
class marks {
 public:
  explicit marks(std::size_t vertices) : words_((vertices + 63) / 64) {}
  bool has(vertex v) const { return (words_[v / 64] >> v % 64 & 1) != 0; }
  void add(vertex v) { words_[v / 64] |= std::uint64_t{1} << v % 64; }
  void remove(vertex v) { words_[v / 64] &= ~(std::uint64_t{1} << v % 64); }
  /// How many of them it has.
  std::uint64_t count(std::span<const vertex> some) const {
    std::uint64_t n = 0;
    for (const vertex v : some) n += has(v) ? 1 : 0;
    return n;
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// A triangle is found at that of its vertices that comes first in this order. So those with many
/// neighbours have few that come behind them.
inline bool comes_before(std::size_t degree_a, vertex a, std::size_t degree_b, vertex b) {
  return degree_a != degree_b ? degree_a < degree_b : a < b;
}

}  // namespace apps::rmat
