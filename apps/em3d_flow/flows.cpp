// SPDX-License-Identifier: Apache-2.0
#include "em3d_flow/flows.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "common/fault.hpp"

namespace apps::em3d_flow {
namespace {

using namespace em3d;
using sojourn::continuation;
using sojourn::future;
using sojourn::global_ptr;

/// Invocations that no global_ptr counts.
struct hops {
  std::uint64_t local = 0;
  std::uint64_t remote = 0;
  friend hops operator+(hops a, hops b) { return {a.local + b.local, a.remote + b.remote}; }
};
hops forwarded;

/// Where the value arrives that an edge leads to.
struct slot {
  double value = 0;
  global_ptr<slot> next;  ///< Of another edge that leads to the same node; null at the last.

  void link(global_ptr<slot> behind) { next = behind; }
  void put(double arrived) { value = arrived; }

  /// Passes the value on, and with it the right to say that all have it.
  void forward(continuation<void> all_have_it, double arrived) {
    value = arrived;
    if (next) return forward_to(std::move(all_have_it), next, arrived);
    all_have_it();
  }
  static void forward_to(continuation<void> all_have_it, global_ptr<slot> at, double value) {
    if (at.is_local()) {
      ++forwarded.local;
      return at.local()->forward(std::move(all_have_it), value);
    }
    ++forwarded.remote;
    sojourn::rpc_ff(
        at.where(),
        [](continuation<void> answer, global_ptr<slot> here, double arrived) {
          here.local()->forward(std::move(answer), arrived);
        },
        std::move(all_have_it), at, value);
  }
};

/// An array on each rank; this one's lies here.
template <class T>
class arrays {
 public:
  /// Collective. Suspends.
  explicit arrays(std::size_t count)
      : count_(count),
        own_(sojourn::make_array<T>(sojourn::rank_me(), count)),
        of_rank_(sojourn::all_gather(own_)) {}
  ~arrays() { sojourn::destroy_array(own_, count_); }
  arrays(const arrays&) = delete;
  arrays& operator=(const arrays&) = delete;

  std::span<T> own() { return {own_.local(), count_}; }
  global_ptr<T> at(std::uint32_t rank, std::size_t index) const {
    return of_rank_[rank] + static_cast<std::ptrdiff_t>(index);
  }

 private:
  std::size_t count_;
  global_ptr<T> own_;
  std::vector<global_ptr<T>> of_rank_;
};

/// This rank's nodes of one kind, and their edges.
struct nodes_of_kind {
  /// Collective. Suspends.
  nodes_of_kind(const settings& s, kind k)
      : nodes(count_at(s, sojourn::rank_count(), sojourn::rank_me())) {
    part p = make_part(s, sojourn::rank_count(), sojourn::rank_me(), k);
    std::ranges::copy(p.nodes, nodes.own().begin());
    weights = std::move(p.weights);
    neighbours = std::move(p.neighbours);
  }

  arrays<node> nodes;
  std::vector<double> weights;
  std::vector<place> neighbours;
};

/// A child for each of `count` nodes, all of them begun before any is waited for. All ranks have
/// ended on return.
template <class Body>
void for_each_node(std::size_t count, const Body& body) {
  std::vector<future<void>> children;
  children.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    children.push_back(sojourn::fork([&body, i] { body(i); }));
  }
  join(children);
  sojourn::barrier();
}

/// The graph, and the run over it that all forms share.
class graph {
 public:
  /// Collective. Suspends.
  explicit graph(const settings& s) : chosen(s), of{nodes_of_kind(s, e), nodes_of_kind(s, h)} {}

  /// All steps: update(k) gives the nodes of kind `k` new values.
  template <class Update>
  result run(Update update) {
    const auto steps = [&](std::uint32_t count) {
      for (std::uint32_t step = 0; step < count; ++step) {
        update(e);
        update(h);
      }
    };
    sojourn::barrier();
    steps(chosen.warm_up);
    execution_meter meter;
    meter.start();
    const hops before = forwarded;
    steps(chosen.steps);
    result r{meter.stop(), {}};
    const hops passed = sojourn::reduce(
        hops{forwarded.local - before.local, forwarded.remote - before.remote}, std::plus<>{});
    r.measured.local += passed.local;
    r.measured.remote += passed.remote;

    values_of_rank found;
    for (const kind k : {e, h}) {
      for (const node& n : of[k].nodes.own()) found[k].push_back(n.value);
    }
    r.fault = first_fault(
        difference(found, compute_alone(chosen, sojourn::rank_count(), sojourn::rank_me())));
    return r;
  }

  /// Updates the nodes of kind `k`, a child each; read(edge) is what the edge leads to.
  template <class Read>
  void update(kind k, const Read& read) {
    const std::span<node> nodes = of[k].nodes.own();
    for_each_node(nodes.size(), [&](std::size_t i) {
      update_node(nodes[i], of[k].weights.data(), i * chosen.degree, chosen.degree, read);
    });
  }

  const settings chosen;
  std::array<nodes_of_kind, 2> of;
};

/// The edges to this rank's nodes of one kind as slots, and those from its nodes of the other kind.
class arriving {
 public:
  /// Collective. Suspends. For values that nodes of kind `k` need.
  arriving(const settings& s, kind k)
      : slots_(std::size_t{count_at(s, sojourn::rank_count(), sojourn::rank_me())} * s.degree),
        dependents_(count_at(s, sojourn::rank_count(), sojourn::rank_me())) {
    std::vector<std::vector<place>> sources;
    std::size_t most = 0;
    for (int r = 0; r < sojourn::rank_count(); ++r) {
      sources.push_back(make_part(s, sojourn::rank_count(), r, k).neighbours);
      most = std::max(most, sources.back().size());
    }
    // Round the ranks, so that a chain goes to and fro among them as its nodes happen to be placed.
    for (std::size_t edge = 0; edge < most; ++edge) {
      for (std::uint32_t r = 0; r < sources.size(); ++r) {
        if (edge >= sources[r].size()) continue;
        const place from = sources[r][edge];
        if (from.rank != static_cast<std::uint32_t>(sojourn::rank_me())) continue;
        dependents_[from.index].push_back(slots_.at(r, edge));
      }
    }
  }

  /// Makes a chain of each node's slots. Collective. Suspends.
  void link() {
    for_each_node(dependents_.size(), [this](std::size_t i) {
      const auto& chain = dependents_[i];
      for (std::size_t j = 1; j < chain.size(); ++j) chain[j - 1].call<&slot::link>(chain[j]);
    });
  }

  /// The slots of those that depend on one of this rank's nodes.
  std::span<const global_ptr<slot>> of(std::size_t node) const { return dependents_[node]; }
  /// What has arrived for an edge of this rank.
  double operator[](std::size_t edge) { return slots_.own()[edge].value; }

 private:
  arrays<slot> slots_;
  std::vector<std::vector<global_ptr<slot>>> dependents_;
};

/// All steps of a form in which each node has its value brought to its dependents, by a child:
/// bring(slots, value) returns when all have it. Then a child for each node adds up what came.
template <class Bring>
result run_bringing(graph& g, std::array<arriving, 2>& needed_by, const Bring& bring) {
  return g.run([&](kind k) {
    const std::span<const node> sources = g.of[other(k)].nodes.own();
    for_each_node(sources.size(), [&](std::size_t i) {
      const auto dependents = needed_by[k].of(i);
      if (!dependents.empty()) bring(dependents, sources[i].value);
    });
    g.update(k, [&](std::size_t edge) { return needed_by[k][edge]; });
  });
}

}  // namespace

result run_pull(const settings& chosen) {
  graph g(chosen);
  return g.run([&](kind k) {
    g.update(k, [&](std::size_t edge) {
      const place from = g.of[k].neighbours[edge];
      return g.of[other(k)].nodes.at(from.rank, from.index).template call<&node::read>();
    });
  });
}

result run_push(const settings& chosen) {
  graph g(chosen);
  std::array needed_by{arriving(chosen, e), arriving(chosen, h)};
  return run_bringing(g, needed_by, [](std::span<const global_ptr<slot>> dependents, double value) {
    std::vector<future<void>> replies;
    replies.reserve(dependents.size());
    for (const auto& to : dependents) replies.push_back(to.async<&slot::put>(value));
    join(replies);
  });
}

result run_forward(const settings& chosen) {
  graph g(chosen);
  std::array needed_by{arriving(chosen, e), arriving(chosen, h)};
  for (const kind k : {e, h}) needed_by[k].link();
  return run_bringing(g, needed_by, [](std::span<const global_ptr<slot>> chain, double value) {
    sojourn::call_cc(slot::forward_to, chain.front(), value);
  });
}

}  // namespace apps::em3d_flow
