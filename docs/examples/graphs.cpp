// SPDX-License-Identifier: Apache-2.0
// A graph that is dealt out over the ranks: a breadth-first search, shortest ways, what hangs
// together, and triangles.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <sojourn/containers.hpp>
#include <sojourn/sojourn.hpp>
#include <span>
#include <utility>
#include <vector>

using namespace sojourn;

// Towns on a map of 40 by 25: each has roads to some others nearby, which have lengths.
constexpr std::size_t towns = 1000;
using roads = dist_graph<int>;

template <class Add>
void add_roads(Add add) {
  for (std::size_t i = static_cast<std::size_t>(rank_me()); i < towns;
       i += static_cast<std::size_t>(rank_count())) {
    if (i % 40 != 39 && i % 7 != 0) add(i, i + 1, static_cast<int>(i % 5 + 1));
    if (i + 40 < towns && i % 11 != 3) add(i, i + 40, static_cast<int>(i % 3 + 2));
    if (i % 40 != 39 && i + 41 < towns && i % 4 == 1) add(i, i + 41, 5);
  }
}

// ---- Level by level ----

constexpr int far = 1'000'000;

void breadth_first(roads map) {
  const auto stops = map.make_values<int>(far);
  auto now = dist_bag<std::size_t>::make();
  auto next = dist_bag<std::size_t>::make();
  if (map.is_here(0)) {
    stops.here(0) = 0;
    now.push_here(0);
  }
  int level = 0;
  while (now.size_all() > 0) {
    ++level;
    finish_all([&] {
      for (const std::size_t town : now.take_here())
        for (const auto [to, length] : map.row_here(town))
          stops.ff_update(
              to,
              [](std::size_t v, int& its_stops, int roads_to_it, dist_bag<std::size_t> reached) {
                if (its_stops != far) return;
                its_stops = roads_to_it;
                reached.push_here(v);
              },
              level, next);
    });
    std::swap(now, next);
  }
  if (rank_me() == 0) std::printf("%d roads at most\n", level - 1);
  next.destroy_all();
  now.destroy_all();
  stops.destroy_all();
}

// ---- Whoever has a shorter way tells its neighbours ----

struct reach {
  void operator()(roads::row_type town, roads map, dist_vector<int, cyclic> way, int length) const {
    int& best = way.here(town.vertex());
    if (best <= length) return;
    best = length;
    for (const auto [to, more] : town) map.ff_visit(to, reach(), map, way, length + more);
  }
};

void shortest_ways(roads map) {
  const auto way = map.make_values<int>(far);
  finish_all([&] {
    if (rank_me() == 0) map.ff_visit(0, reach(), map, way, 0);
  });
  if (rank_me() == 0) std::printf("%d to the last town\n", way.get(towns - 1));
  barrier();
  way.destroy_all();
}

// ---- What hangs together ----

void islands(roads map) {
  const auto sets = dist_disjoint_set<>::make(map.size());
  for (const std::size_t town : map.vertices_here())
    for (const auto [to, length] : map.row_here(town)) sets.unite_here(town, to);
  sets.compress_all();
  const std::size_t count = sets.count_all();

  const auto sizes = dist_counter<std::size_t>::make();
  finish_all([&] {
    for (const auto [town, root] : sets) sizes.ff_add(root);
  });
  const auto largest = sizes.top_all(1);
  if (rank_me() == 0)
    std::printf("parts: %zu, the largest of %ld towns\n", count, largest[0].second);
  sizes.destroy_all();
  sets.destroy_all();
}

// ---- Triangles ----

void triangles(roads map) {
  // Each triangle is found at its least town, which asks the one in the middle.
  long found = 0;
  for (const std::size_t town : map.vertices_here()) {
    std::vector<std::size_t> greater;
    for (const auto [to, length] : map.row_here(town))
      if (to > town) greater.push_back(to);
    for (const std::size_t middle : greater)
      found += map.visit(
          middle,
          [](roads::row_type row, std::span<const std::size_t> others) {
            long n = 0;
            for (const std::size_t other : others)
              n += other > row.vertex() && row.leads_to(other) ? 1 : 0;
            return n;
          },
          std::span<const std::size_t>(greater));
  }
  const long all = reduce(found, std::plus<>());
  if (rank_me() == 0) std::printf("%ld triangles\n", all);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    const auto map = roads::make(towns, {.both_ways = true}, [](auto add) { add_roads(add); });
    breadth_first(map);
    shortest_ways(map);
    islands(map);
    triangles(map);
    barrier();
    map.destroy_all();
  });
}
