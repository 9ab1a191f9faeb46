// SPDX-License-Identifier: Apache-2.0
// dist_graph and dist_disjoint_set beside serial models: random graphs with loops and repeated
// edges, with fewer vertices than ranks and with many, in turn and in blocks.
#include <sojourn/containers/dist_disjoint_set.hpp>
#include <sojourn/containers/dist_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "jobs/check.hpp"

using namespace sojourn;

namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

u64 seed = 1;
constexpr std::size_t sizes[] = {0, 1, 2, 3, 7, 64, 1001};

struct test_edge {
  std::size_t from;
  std::size_t to;
  int weight;
};
/// The same on every rank.
std::vector<test_edge> random_edges(std::size_t vertices, std::size_t count, u64 salt) {
  std::vector<test_edge> edges;
  if (vertices == 0) return edges;
  std::mt19937_64 random(seed ^ salt);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from = random() % vertices;
    const std::size_t to = random() % 8 == 0 ? from : random() % vertices;
    edges.push_back({from, to, static_cast<int>(random() % 5)});
    if (random() % 4 == 0) edges.push_back(edges.back());
  }
  return edges;
}
/// The i-th edge is passed by one rank.
bool is_mine(std::size_t i, const team& members) {
  return static_cast<rank_t>(i * i % static_cast<std::size_t>(members.rank_count())) ==
         members.rank_me();
}

// ---- Graphs -------------------------------------------------------------------------------------

/// The rows that the options ask for, each as a sorted list of ends with weights.
std::vector<std::vector<std::pair<std::size_t, int>>> model_rows(
    std::size_t vertices, const std::vector<test_edge>& edges, const graph_options& options) {
  std::vector<std::vector<std::pair<std::size_t, int>>> rows(vertices);
  for (const test_edge& e : edges) {
    rows[e.from].emplace_back(e.to, e.weight);
    if (options.both_ways && e.from != e.to) rows[e.to].emplace_back(e.from, e.weight);
  }
  for (std::size_t v = 0; v < vertices; ++v) {
    auto& row = rows[v];
    std::sort(row.begin(), row.end());
    if (!options.simple) continue;
    std::erase_if(row, [&](const auto& end) { return end.first == v; });
    row.erase(std::unique(row.begin(), row.end(),
                          [](const auto& a, const auto& b) { return a.first == b.first; }),
              row.end());
  }
  return rows;
}

template <class Vertex, class Layout>
void rows_are_those_of_the_model_of(const team& members) {
  using plain = dist_graph<no_weight, Vertex, Layout>;
  using weighted = dist_graph<int, Vertex, Layout>;
  for (const std::size_t size : sizes) {
    for (const graph_options options :
         {graph_options{}, {.both_ways = true}, {.simple = true}, {true, true}}) {
      const auto edges = random_edges(size, size * 3, size);
      const auto rows = model_rows(size, edges, options);
      const auto graph = plain::make(
          size, options,
          [&](auto add) {
            for (std::size_t i = 0; i < edges.size(); ++i)
              if (is_mine(i, members)) add(edges[i].from, edges[i].to);
          },
          members);
      const auto heavy = weighted::make(
          size, options,
          [&](auto add) {
            for (std::size_t i = 0; i < edges.size(); ++i)
              if (is_mine(i, members)) add(edges[i].from, edges[i].to, edges[i].weight);
          },
          members);
      CHECK_EQUAL(graph.size(), size);
      std::size_t arcs = 0;
      for (const auto& row : rows) arcs += row.size();
      CHECK_EQUAL(graph.arcs_all(), arcs);
      CHECK_EQUAL(heavy.arcs_all(), arcs);

      std::size_t here = 0;
      for (const std::size_t v : graph.vertices_here()) {
        ++here;
        CHECK(graph.is_here(v));
        CHECK_EQUAL(graph.owner(v), rank_me());
        const auto row = graph.row_here(v);
        const auto heavy_row = heavy.row_here(v);
        CHECK_EQUAL(row.vertex(), v);
        CHECK_EQUAL(row.size(), rows[v].size());
        CHECK_EQUAL(heavy_row.size(), rows[v].size());
        for (std::size_t k = 0; k < row.size(); ++k) {
          CHECK_EQUAL(row[k], rows[v][k].first);
          CHECK_EQUAL(heavy_row[k].to, rows[v][k].first);
          CHECK_EQUAL(heavy_row[k].weight, rows[v][k].second);
          CHECK(row.leads_to(row[k]) && heavy_row.leads_to(row[k]));
        }
        for (const std::size_t other : {std::size_t{0}, v, size})
          CHECK_EQUAL(heavy_row.leads_to(other),
                      std::any_of(rows[v].begin(), rows[v].end(),
                                  [&](const auto& end) { return end.first == other; }));
      }
      CHECK_EQUAL(here, graph.size_here());
      CHECK_EQUAL(reduce(here, std::plus<>(), members), size);

      for (std::size_t v = 0; v < size; v += 1 + size / 20) {
        CHECK_EQUAL(graph.degree(v), rows[v].size());
        const auto ends = heavy.neighbours(v);
        CHECK_EQUAL(ends.size(), rows[v].size());
        CHECK(heavy.async_neighbours(v).get() == ends);
        long expected = 0;
        for (const auto& [to, weight] : rows[v]) expected += static_cast<long>(to) * weight;
        for (const via how : {via::rpc, via::migrate})
          CHECK_EQUAL(heavy.visit(
                          how, v,
                          [](auto row, long more) {
                            for (const auto [to, weight] : row)
                              more += static_cast<long>(to) * weight;
                            return more;
                          },
                          7L),
                      expected + 7);
      }
      barrier(members);
      heavy.destroy_all();
      graph.destroy_all();
    }
  }
}
void rows_are_those_of_the_model() {
  rows_are_those_of_the_model_of<u32, cyclic>(team::world());
  rows_are_those_of_the_model_of<u64, blocks>(team::world());
}
void a_team_has_its_own_graph() {
  rows_are_those_of_the_model_of<u32, blocks>(team::world().split(rank_me() % 2, -rank_me()));
}

/// Visits that send go on until none improves anything: shortest ways from vertex 0.
using ways = dist_graph<int>;
using lengths = dist_vector<long, cyclic>;
struct relax {
  void operator()(ways::row_type row, ways graph, lengths all, long length) const {
    if (all.here(row.vertex()) <= length) return;
    all.here(row.vertex()) = length;
    for (const auto [to, weight] : row) graph.ff_visit(to, relax(), graph, all, length + weight);
  }
};
void one_way_visits_go_on() {
  constexpr std::size_t size = 300;
  const auto edges = random_edges(size, 900, 77);
  const auto graph = ways::make(size, [&](auto add) {
    for (std::size_t i = 0; i < edges.size(); ++i)
      if (is_mine(i, team::world())) add(edges[i].from, edges[i].to, edges[i].weight);
  });
  constexpr long far = 1'000'000;
  const auto length = graph.make_values<long>(far);
  finish_all([&] {
    if (rank_me() == rank_count() - 1) graph.ff_visit(0, relax(), graph, length, 0L);
  });
  std::vector<long> expected(size, far);
  expected[0] = 0;
  for (bool better = true; std::exchange(better, false);)
    for (const test_edge& e : edges)
      if (expected[e.from] + e.weight < expected[e.to]) {
        expected[e.to] = expected[e.from] + e.weight;
        better = true;
      }
  for (const std::size_t v : length.indices_here()) CHECK_EQUAL(length.here(v), expected[v]);
  barrier();
  length.destroy_all();
  graph.destroy_all();
}

void mistakes_are_named() {
  const auto graph = dist_graph<>::make(10, [](auto add) { add(1, 2); });
  CHECK_THROWS(error, (void)graph.degree(10));
  CHECK_THROWS(error, (void)graph.neighbours(10));
  CHECK_THROWS(error, graph.ff_visit(10, [](auto) {}));
  CHECK_THROWS(error, (void)graph.row_here(10));
  CHECK(!graph.is_here(10));
  if (rank_count() > 1) CHECK_THROWS(error, (void)graph.row_here(rank_me() == 0 ? 1 : 0));
  barrier();
  graph.destroy_all();
  // Only one rank passes a wrong edge: all are told.
  CHECK_THROWS(error, (void)dist_graph<>::make(10, [](auto add) {
                 add(0, 9);
                 if (rank_me() == 0) add(0, 10);
               }));
  CHECK_THROWS(error, (void)dist_graph<>::make(10, [](auto add) {
                 if (rank_me() == rank_count() - 1) add(10, 0);
               }));
  const std::size_t too_many = (std::size_t{1} << 32) + 1;
  CHECK_THROWS(error, (void)dist_graph<>::make(too_many, [](auto) {}));
  CHECK_THROWS(error, (void)dist_disjoint_set<>::make(too_many));
  if (rank_count() > 1) {
    const std::size_t size = 10 + static_cast<std::size_t>(rank_me());
    CHECK_THROWS(error, (void)dist_graph<>::make(size, [](auto add) { add(9, 9); }));
    CHECK_THROWS(error, (void)dist_disjoint_set<>::make(size));
    CHECK_THROWS(error, (void)dist_vector<int>::make(size));
  }
}

// ---- Disjoint sets ------------------------------------------------------------------------------

class model_sets {
 public:
  explicit model_sets(std::size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void unite(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }
  std::size_t count() const {
    std::size_t roots = 0;
    for (std::size_t i = 0; i < parent_.size(); ++i) roots += parent_[i] == i ? 1 : 0;
    return roots;
  }

 private:
  std::vector<std::size_t> parent_;
};

template <class Sets>
void sets_agree_with(const model_sets& model, const Sets& sets, const team& members) {
  std::size_t seen = 0;
  for (const auto [element, root] : sets) {
    ++seen;
    CHECK_EQUAL(sets.owner(element), rank_me());
    CHECK_EQUAL(root, model.root(element));
    CHECK_EQUAL(sets.root_here(element), root);
  }
  CHECK_EQUAL(seen, sets.size_here());
  CHECK_EQUAL(reduce(seen, std::plus<>(), members), sets.size());
  CHECK_EQUAL(sets.count_all(), model.count());
  for (std::size_t i = 0; i < sets.size(); i += 1 + sets.size() / 10) {
    CHECK_EQUAL(sets.root(i), model.root(i));
    CHECK_EQUAL(sets.same(i, sets.size() - 1), model.root(i) == model.root(sets.size() - 1));
  }
}

template <class Index, class Layout>
void sets_are_those_of_the_model(const team& members) {
  for (const std::size_t size : sizes) {
    for (const std::size_t edges_each : {0u, 1u, 3u}) {  // of all vertices, in tenths
      const auto sets = dist_disjoint_set<Index, Layout>::make(size, members);
      model_sets model(size);
      sets_agree_with(model, sets, members);
      // Joined in three rounds, with what was joined before still there.
      for (u64 round = 0; round < 3; ++round) {
        const auto edges = random_edges(size, size * edges_each / 10 + round, size + round * 17);
        for (std::size_t i = 0; i < edges.size(); ++i) {
          model.unite(edges[i].from, edges[i].to);
          if (is_mine(i, members)) sets.unite_here(edges[i].from, edges[i].to);
        }
        sets.compress_all();
        sets_agree_with(model, sets, members);
        barrier(members);
      }
      sets.destroy_all();
    }
  }
}
void sets_are_those_of_the_model_of_both_kinds() {
  sets_are_those_of_the_model<u32, cyclic>(team::world());
  sets_are_those_of_the_model<u64, blocks>(team::world());
}
void a_team_has_its_own_sets() {
  sets_are_those_of_the_model<u32, cyclic>(team::world().split(rank_me() % 2, -rank_me()));
}

/// One long way, of which each rank knows every n-th step only: its elements in order, backwards,
/// and in a random order.
void long_ways_are_joined() {
  constexpr std::size_t size = 20'000;
  for (int order = 0; order < 3; ++order) {
    std::vector<std::size_t> way(size);
    std::iota(way.begin(), way.end(), std::size_t{0});
    if (order == 1) std::reverse(way.begin(), way.end());
    if (order == 2) std::shuffle(way.begin(), way.end(), std::mt19937_64(seed));
    const auto sets = dist_disjoint_set<>::make(size);
    for (std::size_t i = 0; i + 1 < size; ++i)
      if (i != size / 2 &&
          static_cast<rank_t>(i % static_cast<std::size_t>(rank_count())) == rank_me())
        sets.unite_here(way[i], way[i + 1]);
    sets.compress_all();
    CHECK_EQUAL(sets.count_all(), 2u);
    const std::size_t first = *std::min_element(way.begin(), way.begin() + size / 2 + 1);
    const std::size_t second = *std::min_element(way.begin() + size / 2 + 1, way.end());
    for (std::size_t i = 0; i < size; ++i)
      if (sets.owner(way[i]) == rank_me())
        CHECK_EQUAL(sets.root_here(way[i]), i <= size / 2 ? first : second);
    barrier();
    sets.destroy_all();
  }
}

void mistakes_with_sets_are_named() {
  const auto sets = dist_disjoint_set<>::make(10);
  CHECK_THROWS(error, sets.unite_here(0, 10));
  CHECK_THROWS(error, sets.unite_here(10, 0));
  CHECK_THROWS(error, (void)sets.root(10));
  CHECK_THROWS(error, (void)sets.root_here(10));
  if (rank_count() > 1) CHECK_THROWS(error, (void)sets.root_here(rank_me() == 0 ? 1 : 0));
  barrier();
  sets.destroy_all();
}

/// Division by a multiplication, at the borders.
void elements_in_turn_have_places() {
  for (std::size_t members = 1; members <= 70; ++members) {
    const cyclic layout(0, members);
    std::mt19937_64 random(seed + members);
    for (int n = 0; n < 2000; ++n) {
      std::size_t i = random() >> (random() % 64);
      if (n % 4 == 0) i -= i % members;
      if (n % 4 == 1) i = i - i % members - 1;
      if (n == 2) i = 0xffff'ffff;
      CHECK_EQUAL(layout.member_of(i), i % members);
      CHECK_EQUAL(layout.place_of(i, i % members), i / members);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [=] {
    if (const char* text = std::getenv("SOJOURN_TEST_SEED"))
      seed = std::strtoull(text, nullptr, 10);
    check::claim("elements in turn have places", elements_in_turn_have_places);
    check::claim("rows are those of the model", rows_are_those_of_the_model);
    check::claim("a team has its own graph", a_team_has_its_own_graph);
    check::claim("one-way visits go on", one_way_visits_go_on);
    check::claim("mistakes are named", mistakes_are_named);
    check::claim("sets are those of the model", sets_are_those_of_the_model_of_both_kinds);
    check::claim("a team has its own sets", a_team_has_its_own_sets);
    check::claim("long ways are joined", long_ways_are_joined);
    check::claim("mistakes with sets are named", mistakes_with_sets_are_named);
    return check::verdict();
  });
}
