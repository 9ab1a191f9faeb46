// SPDX-License-Identifier: Apache-2.0
// A graph whose vertices are dealt out over ranks, each with its neighbours, in compressed rows.
//
//     const auto graph = dist_graph<>::make(vertices, {.both_ways = true}, [&](auto add) {
//       for (auto [u, v] : my_edges) add(u, v);                       // on all ranks together
//     });
//     for (const std::size_t v : graph.vertices_here())
//       for (const std::size_t neighbour : graph.row_here(v)) …
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sojourn/calls/batch.hpp"
#include "sojourn/calls/bundle.hpp"
#include "sojourn/calls/travels.hpp"
#include "sojourn/collectives.hpp"
#include "sojourn/containers/dist_vector.hpp"
#include "sojourn/containers/items.hpp"
#include "sojourn/containers/layouts.hpp"
#include "sojourn/containers/saved.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/finish.hpp"
#include "sojourn/future.hpp"
#include "sojourn/global_ptr.hpp"
#include "sojourn/sharded.hpp"
#include "sojourn/team.hpp"
#include "sojourn/via.hpp"

namespace sojourn {

/// What the arcs of a graph without weights have.
struct no_weight {
  friend constexpr bool operator==(no_weight, no_weight) = default;
};

/// What the end of an arc is in a row: the vertex, or the vertex and the weight of the arc.
template <class Vertex, class Weight>
struct weighted_end {
  Vertex to;
  Weight weight;
  friend bool operator==(const weighted_end&, const weighted_end&) = default;
};

/// How a graph is made of the edges that are passed.
struct graph_options {
  bool both_ways = false;  ///< Each edge is an arc in both directions; a loop is one arc.
  /// Loops are left out, and all but one of equal arcs: the lightest, where weights are ordered.
  bool simple = false;
};

namespace containers {

template <class Vertex, class Weight>
struct arc_ends {
  using type = weighted_end<Vertex, Weight>;
  static type make(Vertex to, const Weight& weight) { return {to, weight}; }
  static Vertex vertex(const type& end) { return end.to; }
  static const Weight& weight(const type& end) { return end.weight; }
  static bool is_before(const type& a, const type& b) {
    if constexpr (std::totally_ordered<Weight>) {
      return a.to != b.to ? a.to < b.to : a.weight < b.weight;
    } else {
      return a.to < b.to;
    }
  }
};
template <class Vertex>
struct arc_ends<Vertex, no_weight> {
  using type = Vertex;
  static type make(Vertex to, no_weight) { return to; }
  static Vertex vertex(Vertex end) { return end; }
  static no_weight weight(Vertex) { return {}; }
  static bool is_before(Vertex a, Vertex b) { return a < b; }
};

/// An arc on its way to the rank of the vertex that it leaves.
template <class Vertex, class Weight>
struct arc {
  Vertex from;
  Vertex to;
  [[no_unique_address]] Weight weight;
};

/// The arcs that leave a vertex, in the order of the vertices that they lead to: a range of
/// vertices, or of weighted_end{to, weight}. Names memory of the graph.
template <class Vertex, class Weight>
class graph_row {
  using ends = arc_ends<Vertex, Weight>;
  using end_type = typename ends::type;

 public:
  graph_row(std::size_t vertex, std::span<const end_type> all) : vertex_(vertex), all_(all) {}
  std::size_t vertex() const { return vertex_; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  const end_type* data() const { return all_.data(); }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  const end_type& operator[](std::size_t i) const { return all_[i]; }
  operator std::span<const end_type>() const { return all_; }
  /// Some arc leads to `to`.
  bool leads_to(std::size_t to) const {
    const auto found =
        std::lower_bound(all_.begin(), all_.end(), to,
                         [](const end_type& e, std::size_t v) { return ends::vertex(e) < v; });
    return found != all_.end() && ends::vertex(*found) == to;
  }

 private:
  std::size_t vertex_;
  std::span<const end_type> all_;
};

/// One rank's part of a dist_graph.
template <class Weight, class Vertex, class Layout>
class graph_part {
 public:
  using ends = arc_ends<Vertex, Weight>;
  using end_type = typename ends::type;
  using row_type = graph_row<Vertex, Weight>;
  using arc_type = arc<Vertex, Weight>;

  graph_part(std::size_t vertices, std::size_t members, std::size_t number)
      : size(vertices),
        layout(vertices, members),
        member(number),
        count(layout.count_of(number, vertices)) {}

  void take(batch<arc_type> more) { arcs_.insert(arcs_.end(), more.begin(), more.end()); }
  void take_own(const arc_type& one) { arcs_.push_back(one); }

  /// Makes the rows of the arcs that were taken, which are forgotten.
  void make_rows(bool is_simple) {
    first_.assign(count + 1, 0);
    for (const arc_type& a : arcs_) ++first_[place(a.from) + 1];
    for (std::size_t i = 0; i < count; ++i) first_[i + 1] += first_[i];
    ends_.resize(arcs_.size());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (const arc_type& a : arcs_) ends_[next[place(a.from)]++] = ends::make(a.to, a.weight);
    std::vector<arc_type>().swap(arcs_);
    std::vector<std::size_t>().swap(next);

    auto kept = ends_.begin();
    auto begin = ends_.begin();
    for (std::size_t i = 0; i < count; ++i) {
      const auto end = ends_.begin() + static_cast<std::ptrdiff_t>(first_[i + 1]);
      if (!std::is_sorted(begin, end, ends::is_before)) std::sort(begin, end, ends::is_before);
      if (is_simple) {
        const auto row = kept;
        const std::size_t loop = layout.index_of(member, i);
        for (auto e = begin; e != end; ++e) {
          const Vertex to = ends::vertex(*e);
          if (to != loop && (kept == row || ends::vertex(kept[-1]) != to)) *kept++ = *e;
        }
        first_[i + 1] = static_cast<std::size_t>(kept - ends_.begin());
      }
      begin = end;
    }
    if (!is_simple) return;
    ends_.erase(kept, ends_.end());
    ends_.shrink_to_fit();
  }

  /// Requires: the vertex is here.
  row_type row(std::size_t v) const {
    const std::size_t at = place(v);
    return {v, std::span(ends_.data() + first_[at], first_[at + 1] - first_[at])};
  }
  std::size_t arcs() const { return ends_.size(); }

  std::size_t degree(std::size_t v) const { return row(v).size(); }
  std::vector<end_type> neighbours(std::size_t v) const {
    const row_type r = row(v);
    return {r.begin(), r.end()};
  }
  template <class F, class... A>
  std::decay_t<std::invoke_result_t<F, row_type, A...>> visit(std::size_t v, A... arguments) const {
    return F()(row(v), std::move(arguments)...);
  }

  const std::size_t size;  ///< Vertices of all parts together.
  const Layout layout;
  const std::size_t member;
  const std::size_t count;  ///< Vertices of this part.

 private:
  std::size_t place(std::size_t v) const { return layout.place_of(v, member); }

  std::vector<arc_type> arcs_;      ///< Before there are rows.
  std::vector<std::size_t> first_;  ///< Where the row of each vertex begins, and the last one ends.
  std::vector<end_type> ends_;      ///< Of all rows.
};

}  // namespace containers

template <class Vertex, class Weight>
inline constexpr bool travels<containers::arc<Vertex, Weight>> = travels<Weight>;
template <class Vertex, class Weight>
inline constexpr bool travels<weighted_end<Vertex, Weight>> = travels<Weight>;

/// A graph of the vertices 0 … n - 1, dealt out over the ranks that made it, in turn or in
/// `blocks`; each lies on its rank with the arcs that leave it. A name of 8 bytes, which travels.
/// `Weight` is what an arc has besides its ends, and travels. `Vertex` is the type in which
/// vertices are kept: std::uint64_t for graphs of more than four thousand million of them. Once
/// made, it does not change. What names say, and errors: as dist_map (dist_map.hpp). A graph is
/// used on ranks that made it. Errors: sojourn::error when there is no such vertex, or, where a
/// name ends in _here, when it is on another rank.
///
/// What is called at a vertex is a lambda, or an object of a class, without captures. It takes the
/// vertex's row, which says which vertex it is, and then the arguments that are passed.
template <class Weight = no_weight, class Vertex = std::uint32_t, class Layout = cyclic>
class dist_graph {
  static_assert(std::unsigned_integral<Vertex>, "sojourn: a vertex is an unsigned integer");
  static_assert(travels<Weight>, "sojourn: the weights of a graph's arcs must travel");
  using part = containers::graph_part<Weight, Vertex, Layout>;
  using arc = typename part::arc_type;

 public:
  /// What a row has many of: Vertex, or weighted_end<Vertex, Weight>.
  using end_type = typename part::end_type;
  using row_type = typename part::row_type;

  /// Names no graph.
  constexpr dist_graph() = default;
  /// Collective among `members`, which pass the same number of vertices and options. Each calls
  /// edges(add), which calls add(from, to) or add(from, to, weight) for each edge that this rank
  /// has. add sends, and may suspend; it is called by the fiber that runs edges, until edges
  /// returns, and in no finish that is opened in there. Suspends. Errors, on all members:
  /// sojourn::error when an edge has an end that is no vertex, or when Vertex is too small for so
  /// many; what edges throws.
  template <class Edges>
  static dist_graph make(std::size_t vertices, const graph_options& options, Edges edges,
                         const team& members = team::world()) {
    containers::check_same_size("dist_graph", vertices, members);
    if (vertices > 0 && vertices - 1 > std::numeric_limits<Vertex>::max())
      throw error("a dist_graph of " + std::to_string(vertices) +
                  " vertices needs a greater type for them: dist_graph<Weight, std::uint64_t>");
    dist_graph made;
    made.parts_ =
        make_sharded<part>(members, vertices, static_cast<std::size_t>(members.rank_count()),
                           static_cast<std::size_t>(members.rank_me()));
    part& mine = made.parts_.here();
    std::exception_ptr failure;
    try {
      finish_all([&] { made.send_arcs(mine, options, edges); }, members);
      mine.make_rows(options.simple);
    } catch (...) {
      failure = std::current_exception();
    }
    if (reduce(failure != nullptr ? 1 : 0, std::plus<>(), members) == 0) return made;
    made.destroy_all();
    if (failure != nullptr) std::rethrow_exception(failure);
    throw error("a dist_graph could not be made: see what another rank throws");
  }
  template <class Edges>
  static dist_graph make(std::size_t vertices, Edges edges, const team& members = team::world()) {
    return make(vertices, graph_options(), std::move(edges), members);
  }
  /// Collective: makes a graph of what save_all() wrote to `path`, in this program, on however many
  /// ranks. Suspends. Errors, on all members: sojourn::error when the file is not a saved
  /// container, holds another type, or is incomplete or damaged.
  static dist_graph load_all(const std::string& path, const team& members = team::world()) {
    return containers::load_items<Vertex, Vertex, Weight>(
        path, "dist_graph", members, [&](const containers::saved_container& saved, auto each_arc) {
          return make(
              saved.size,
              [&](auto add) {
                each_arc(
                    [&](Vertex from, Vertex to, const Weight& weight) { add(from, to, weight); });
              },
              members);
        });
  }
  /// Collective. Requires: nobody uses the graph any more. Suspends.
  void destroy_all() const { parts_.destroy(); }
  constexpr explicit operator bool() const { return static_cast<bool>(parts_); }
  friend constexpr bool operator==(const dist_graph&, const dist_graph&) = default;

  /// How many vertices there are.
  std::size_t size() const { return parts_.here().size; }
  /// The rank of a vertex.
  rank_t owner(std::size_t v) const { return parts_.rank_of(member_of(parts_.here(), v)); }
  bool is_here(std::size_t v) const {
    const part& mine = parts_.here();
    return mine.layout.member_of(v) == mine.member && v < mine.size;
  }
  /// Collective: a value for each vertex, on its rank. Suspends.
  template <class T>
  dist_vector<T, Layout> make_values(const T& value = T()) const {
    return dist_vector<T, Layout>::make(size(), value, parts_.members());
  }

  // These wait.

  /// How many arcs leave a vertex.
  std::size_t degree(via how, std::size_t v) const {
    return of(v).template call<&part::degree>(how, v);
  }
  std::size_t degree(std::size_t v) const { return degree(via::unsaid, v); }
  /// A copy of the row.
  std::vector<end_type> neighbours(std::size_t v) const {
    return of(v).template call<&part::neighbours>(via::rpc, v);
  }
  future<std::vector<end_type>> async_neighbours(std::size_t v) const {
    return of(v).template async<&part::neighbours>(v);
  }
  /// Returns f(row, arguments…), called at the vertex.
  template <class F, class... A>
  [[gnu::always_inline]] inline auto visit(via how, std::size_t v, F, A... arguments) const {
    check_function<F>();
    return of(v).template call<&part::template visit<F, A...>>(how, v, std::move(arguments)...);
  }
  template <class F, class... A>
  [[gnu::always_inline]] inline auto visit(std::size_t v, F f, A... arguments) const {
    return visit(via::unsaid, v, f, std::move(arguments)...);
  }

  // These send and go on. They suspend only when the way to a rank is full.

  /// Calls f(row, arguments…), which may wait, call, and send in turn.
  template <class F, class... A>
  void ff_visit(std::size_t v, F, A... arguments) const {
    check_function<F>();
    of(v).template ff<&part::template visit<F, A...>>(v, std::move(arguments)...);
  }

  // This rank's vertices.

  containers::indices vertices_here() const {
    const part& mine = parts_.here();
    return {mine.layout.index_of(mine.member, 0), mine.count,
            Layout::step(static_cast<std::size_t>(parts_.rank_count()))};
  }
  row_type row_here(std::size_t v) const {
    const part& mine = parts_.here();
    if (v >= mine.size || mine.layout.member_of(v) != mine.member) [[unlikely]]
      refuse_here(mine, v);
    return mine.row(v);
  }
  std::size_t size_here() const { return parts_.here().count; }
  std::size_t arcs_here() const { return parts_.here().arcs(); }

  // Collective.

  /// Collective: writes the arcs to the file `path`, and a file for each member beside it
  /// (saved.hpp), in a folder that all members see. It replaces what was saved there before.
  /// Suspends. Errors, on all members: sojourn::error when a file cannot be written; then what was
  /// saved before is still there.
  void save_all(const std::string& path) const {
    containers::save_items<Vertex, Vertex, Weight>(
        path, "dist_graph", size(), parts_.members(), [&](auto put) {
          for (const std::size_t v : vertices_here())
            for (const end_type& e : row_here(v))
              put(static_cast<Vertex>(v), part::ends::vertex(e), part::ends::weight(e));
        });
  }
  std::size_t arcs_all() const { return reduce(arcs_here(), std::plus<>(), parts_.members()); }

 private:
  template <class Edges>
  void send_arcs(part& mine, const graph_options& options, Edges& edges) const {
    bundle<&part::take> arcs(parts_);
    const auto send = [&](std::size_t from, std::size_t to, const Weight& weight) {
      const arc one{static_cast<Vertex>(from), static_cast<Vertex>(to), weight};
      const rank_t member = member_of(mine, from);
      if (static_cast<std::size_t>(member) == mine.member) {
        mine.take_own(one);
      } else {
        arcs.to(parts_.rank_of(member), one);
      }
    };
    edges([&](std::size_t from, std::size_t to, const Weight& weight = Weight()) {
      if (to >= mine.size) [[unlikely]]
        refuse(mine, to);
      send(from, to, weight);
      if (options.both_ways && from != to) send(to, from, weight);
    });
  }

  template <class F>
  static constexpr void check_function() {
    static_assert(containers::is_element_function<F>,
                  "sojourn: what is called at a vertex of a graph is a lambda, or an object of a "
                  "class, without captures: pass what it needs as arguments behind it");
  }
  static rank_t member_of(const part& mine, std::size_t v) {
    if (v >= mine.size) [[unlikely]]
      refuse(mine, v);
    return static_cast<rank_t>(mine.layout.member_of(v));
  }
  [[gnu::always_inline]] inline global_ptr<part> of(std::size_t v) const {
    return parts_.on(owner(v));
  }
  [[noreturn]] static void refuse(const part& mine, std::size_t v) {
    throw error("a dist_graph of " + std::to_string(mine.size) + " vertices has no vertex " +
                std::to_string(v));
  }
  [[noreturn]] static void refuse_here(const part& mine, std::size_t v) {
    if (v >= mine.size) refuse(mine, v);
    throw error("dist_graph::row_here(" + std::to_string(v) + ") is called on rank " +
                std::to_string(rank_me()) +
                ", and the vertex is on another one: use neighbours or visit");
  }

  sharded<part> parts_;
};

}  // namespace sojourn
