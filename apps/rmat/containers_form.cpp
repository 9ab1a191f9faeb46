// SPDX-License-Identifier: Apache-2.0
#include <sojourn/containers.hpp>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "common/stopwatch.hpp"
#include "rmat/forms.hpp"

namespace apps::rmat {
namespace {

using vertices = sojourn::dist_bag<vertex>;

/// What happens at a vertex that a search reaches.
struct reach {
  void operator()(std::size_t v, std::uint32_t& depth, std::uint32_t now, vertices next) const {
    if (depth != far) return;
    depth = now;
    next.push_here(static_cast<vertex>(v));
  }
};

/// What counts triangles on a rank, in the graph whose arcs lead only to vertices that come behind
/// (comes_before).
class counting {
 public:
  explicit counting(const graph_type& ordered) : ordered_(ordered), marks_(ordered.size()) {}
  /// `list` is what comes behind some vertex. Counts the triangles of that vertex and two of the
  /// list, the first of which is on this rank.
  void count(sojourn::view<vertex> list) {
    const sojourn::nonblocking<> promise;
    for (const vertex u : list) marks_.add(u);
    for (const vertex u : list)
      if (ordered_.is_here(u)) triangles += marks_.count(ordered_.row_here(u));
    for (const vertex u : list) marks_.remove(u);
  }

  std::uint64_t triangles = 0;

 private:
  const graph_type ordered_;
  marks marks_;
};

}  // namespace

graph_type make_graph(const settings& chosen) {
  return graph_type::make(vertices_of(chosen), {.both_ways = true, .simple = true}, [&](auto add) {
    const auto ranks = static_cast<std::uint64_t>(sojourn::rank_count());
    for (auto i = static_cast<std::uint64_t>(sojourn::rank_me()); i < edges_of(chosen);
         i += ranks) {
      const edge e = edge_of(chosen, i);
      add(e.from, e.to);
    }
  });
}

result run_search(const graph_type& graph, vertex root) {
  result r;
  const stopwatch watch;
  const auto depth = graph.make_values<std::uint32_t>(far);
  auto now = vertices::make();
  auto next = vertices::make();
  marks told(graph.size());  // each vertex is told once from here that it is reached
  if (graph.is_here(root)) reach()(root, depth.here(root), 0, now);
  for (std::uint32_t d = 1; now.size_all() > 0; ++d, std::swap(now, next)) {
    sojourn::finish_all([&] {
      for (const vertex v : now.take_here())
        for (const vertex u : graph.row_here(v)) {
          if (told.has(u)) continue;
          told.add(u);
          if (graph.is_here(u)) {
            reach()(u, depth.here(u), d, next);
          } else {
            depth.ff_update(u, reach(), d, next);
          }
        }
    });
  }
  watch.stop(r.seconds, r.spent);
  summary mine;
  for (const std::size_t v : depth.indices_here())
    if (depth.here(v) != far) mine.add(static_cast<vertex>(v), depth.here(v));
  r.all = sojourn::reduce(mine, std::plus<>{});
  r.number = r.all.found;
  next.destroy_all();
  now.destroy_all();
  depth.destroy_all();
  return r;
}

result run_components(const graph_type& graph) {
  result r;
  const stopwatch watch;
  const auto sets = sojourn::dist_disjoint_set<vertex>::make(graph.size());
  for (const std::size_t v : graph.vertices_here())
    for (const vertex u : graph.row_here(v)) {
      if (u >= v) break;
      sets.unite_here(v, u);
    }
  sets.compress_all();
  r.number = sets.count_all();
  watch.stop(r.seconds, r.spent);
  summary mine;
  for (const auto [v, root] : sets) mine.add(v, root);
  r.all = sojourn::reduce(mine, std::plus<>{});
  sets.destroy_all();
  return r;
}

result run_triangles(const graph_type& graph) {
  result r;
  const stopwatch watch;
  const auto degree = graph.make_values<std::uint32_t>();
  for (const std::size_t v : graph.vertices_here())
    degree.here(v) = static_cast<std::uint32_t>(graph.row_here(v).size());
  sojourn::barrier();
  std::vector<std::uint32_t> degrees(graph.size());
  degree.get_range(0, degrees);
  const graph_type ordered = graph_type::make(graph.size(), [&](auto add) {
    for (const std::size_t v : graph.vertices_here())
      for (const vertex u : graph.row_here(v))
        if (comes_before(degrees[v], static_cast<vertex>(v), degrees[u], u)) add(v, u);
  });
  const auto parts = sojourn::make_sharded<counting>(ordered);
  sojourn::finish_all([&] {
    std::vector<char> goes_to(static_cast<std::size_t>(sojourn::rank_count()));
    for (const std::size_t v : ordered.vertices_here()) {
      const auto row = ordered.row_here(v);
      if (row.size() < 2) continue;
      std::fill(goes_to.begin(), goes_to.end(), 0);
      for (const vertex u : row) goes_to[static_cast<std::size_t>(ordered.owner(u))] = 1;
      for (sojourn::rank_t to = 0; to < sojourn::rank_count(); ++to) {
        if (goes_to[static_cast<std::size_t>(to)] == 0) continue;
        const sojourn::view<vertex> list(row.data(), row.size());
        if (to == sojourn::rank_me()) {
          parts.here().count(list);
        } else {
          parts.on(to).ff<&counting::count>(list);
        }
      }
    }
  });
  r.number = sojourn::reduce(parts.here().triangles, std::plus<>{});
  watch.stop(r.seconds, r.spent);
  parts.destroy();
  ordered.destroy_all();
  degree.destroy_all();
  return r;
}

}  // namespace apps::rmat
