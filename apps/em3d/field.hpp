// SPDX-License-Identifier: Apache-2.0
// What a rank has of the graph, and the run over it that both forms share.
#pragma once

#include <sojourn/sojourn.hpp>

#include <array>
#include <span>
#include <vector>

#include "common/fault.hpp"
#include "em3d/forms.hpp"

namespace apps::em3d {

/// This rank's nodes in the global heap, each kind with room for its ghosts after it.
struct field {
  /// Collective. Suspends.
  explicit field(const settings& s) : chosen(s) {
    const int ranks = sojourn::rank_count();
    const int me = sojourn::rank_me();
    own = count_at(s, ranks, me);
    for (const kind k : {e, h}) {
      part p = make_part(s, ranks, me, k);
      weights[k] = std::move(p.weights);
      from[k] = make_exchange(s, ranks, me, k);
      at[k] = sojourn::make_array<node>(me, own + from[k].ghosts());
      std::copy(p.nodes.begin(), p.nodes.end(), at[k].local());
      of_rank[k] = sojourn::all_gather(at[k]);
      // The nodes that a node depends on are of the other kind.
      neighbours[k] = std::move(p.neighbours);
    }
  }
  ~field() {
    for (const kind k : {e, h}) sojourn::destroy_array(at[k], own + from[k].ghosts());
  }
  field(const field&) = delete;
  field& operator=(const field&) = delete;

  std::span<node> nodes(kind k) { return {at[k].local(), own}; }
  std::span<node> ghosts(kind k) { return {at[k].local() + own, from[k].ghosts()}; }

  /// Updates the nodes of kind `k` from nodes and ghosts that lie here.
  void update(kind k) {
    update_here(nodes(k), weights[k], chosen.degree, from[other(k)].sources, at[other(k)].local());
  }

  /// Calls fetch(its place among mine, the node) for each ghost of kind `k`.
  template <class Fetch>
  void for_each_ghost(kind k, Fetch fetch) {
    std::uint32_t ghost = 0;
    for (std::size_t r = 0; r < from[k].wanted.size(); ++r) {
      for (const std::uint32_t place : from[k].wanted[r]) fetch(ghost++, of_rank[k][r] + place);
    }
  }

  /// Nodes that edges lead to, as global pointers.
  std::vector<sojourn::global_ptr<const node>> pointers_of(kind k) const {
    std::vector<sojourn::global_ptr<const node>> pointers;
    for (const place& p : neighbours[k]) {
      pointers.emplace_back(of_rank[other(k)][p.rank] + p.index);
    }
    return pointers;
  }

  /// Ranks that have or want a ghost of either kind. As many values go the one way as the other may
  /// be none; a message goes all the same, so that no rank gets more than one phase ahead of a
  /// neighbour, whose ghosts it would overwrite.
  std::vector<int> linked() const {
    std::vector<int> ranks;
    for (int r = 0; r < sojourn::rank_count(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      bool any = false;
      for (const kind k : {e, h}) {
        any = any || !from[k].given[i].empty() || !from[k].wanted[i].empty();
      }
      if (any) ranks.push_back(r);
    }
    return ranks;
  }

  /// The values that rank `r` needs of mine, in its order.
  void collect(kind k, std::size_t r, std::vector<node>& into) const {
    const node* values = at[k].local();
    const std::vector<std::uint32_t>& places = from[k].given[r];
    into.resize(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) into[i] = values[places[i]];
  }

  const settings chosen;
  std::uint32_t own = 0;
  std::array<sojourn::global_ptr<node>, 2> at;
  std::array<std::vector<sojourn::global_ptr<node>>, 2> of_rank;
  std::array<std::vector<double>, 2> weights;
  std::array<std::vector<place>, 2> neighbours;
  std::array<exchange, 2> from;
};

/// All steps: phase(k) makes the values that kind `k` needs available, and updates it.
template <class Phase>
result run_steps(field& f, Phase phase) {
  const settings& s = f.chosen;
  const auto steps = [&](std::uint32_t count) {
    for (std::uint32_t step = 0; step < count; ++step) {
      phase(e);
      phase(h);
    }
  };
  split_meter meter;
  sojourn::barrier();
  steps(s.warm_up);
  meter.start();
  steps(s.steps);
  meter.stop();

  values_of_rank found;
  for (const kind k : {e, h}) {
    for (const node& n : f.nodes(k)) found[k].push_back(n.value);
  }
  const int ranks = sojourn::rank_count();
  const int me = sojourn::rank_me();
  result r;
  r.fault = first_fault(difference(found, compute_alone(s, ranks, me)));
  r.seconds = meter.seconds();
  r.split = meter.split(seconds_alone(s, ranks, me));
  r.spent = meter.spent();
  r.costs = meter.costs();
  return r;
}

}  // namespace apps::em3d
