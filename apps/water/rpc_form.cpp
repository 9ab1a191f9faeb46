// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "water/simulation.hpp"

namespace apps::water {
namespace {

using sojourn::global_ptr;

/// A molecule as other ranks see it. Methods do not wait, so one runs at a time.
class molecule {
 public:
  void begin(const sites& position, const sites& force) {
    position_ = position;
    force_ = force;
  }
  sites read() const { return position_; }
  void add(const sites& force) { force_ += force; }

  const sites& position() const { return position_; }
  sites& force() { return force_; }

 private:
  sites position_;
  sites force_;
};

/// A call reads a molecule where a pair needs it, another adds the force on it.
result run_atomic(simulation& sim) {
  const settings& s = sim.chosen;
  const int ranks = sojourn::rank_count();
  const std::uint32_t own = sim.near.own;
  const std::uint32_t first = sim.near.first;
  const auto mine = sojourn::make_array<molecule>(sojourn::rank_me(), own);
  std::vector<global_ptr<molecule>> all(s.molecules);
  const auto of_rank = sojourn::all_gather(mine);
  for (std::uint32_t j = 0; j < s.molecules; ++j) {
    const int owner = owner_of(s, ranks, j);
    all[j] = of_rank[static_cast<std::size_t>(owner)] + (j - first_at(s, ranks, owner));
  }
  std::vector<sites> positions(own);
  std::vector<sites> forces(own);
  force_counter counter;

  const auto done = run_steps(
      sim, [&] { return positions; },
      [&](energies& e) {
        e.intra = sim.moving.predict(positions, forces);
        for (std::uint32_t i = 0; i < own; ++i) mine.local()[i].begin(positions[i], forces[i]);
        sojourn::barrier();
        bool in_reach = false;
        for (std::uint32_t i = 0; i < own; ++i) {
          molecule& here = mine.local()[i];
          for (std::uint32_t k = 1; k <= partners(s, first + i); ++k) {
            const global_ptr<molecule> p = all[(first + i + k) % s.molecules];
            if (p.is_local()) {
              molecule& there = *p.local();
              e.inter += interact(sim.space, here.position(), there.position(), here.force(),
                                  there.force(), &in_reach);
              continue;
            }
            const sites position = p.call<&molecule::read>();
            sites force;
            e.inter +=
                interact(sim.space, here.position(), position, here.force(), force, &in_reach);
            if (!in_reach) continue;
            counter.sent(p.where());
            sojourn::rpc_ff(
                p.where(),
                [](global_ptr<molecule> q, const sites& f) {
                  q.local()->add(f);
                  force_counter::here->arrived();
                },
                p, force);
          }
        }
        counter.wait();
        for (std::uint32_t i = 0; i < own; ++i) forces[i] = mine.local()[i].force();
        e.kinetic = sim.moving.correct(forces);
      });
  sojourn::destroy_array(mine, own);
  return done;
}

/// Where the positions that this rank's pairs need arrive, and the forces on its own molecules.
struct mailbox {
  explicit mailbox(const neighbourhood& n) : near(n), positions(n.slots()), forces(n.slots()) {
    here = this;
  }

  void take_positions(std::uint32_t slot, sojourn::view<sites> values) {
    std::ranges::copy(values, positions.begin() + slot);
    positions_came.arrived();
  }
  void add_forces(int source, sojourn::view<sites> values) {
    const sites* force = values.data();
    for (const std::uint32_t place : near.given[static_cast<std::size_t>(source)]) {
      forces[place] += *force++;
    }
    forces_came.arrived();
  }

  const neighbourhood& near;
  std::vector<sites> positions;  // by slot
  std::vector<sites> forces;
  arrivals positions_came;
  arrivals forces_came;

  static inline mailbox* here;
};

/// A call brings all positions that a rank needs of another, and a call returns all forces.
result run_prefetch(simulation& sim) {
  const neighbourhood& near = sim.near;
  const auto own = near.own;
  mailbox box(near);
  const auto own_of = [own](std::vector<sites>& all) { return std::span(all).first(own); };
  const auto ranks_with = [](const std::vector<std::vector<std::uint32_t>>& places) {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(places, [](const auto& p) { return !p.empty(); }));
  };
  const std::uint64_t givers = ranks_with(near.wanted);
  const std::uint64_t takers = ranks_with(near.given);
  std::vector<sites> values;

  return run_steps(
      sim, [&] { return std::vector<sites>(box.positions.begin(), box.positions.begin() + own); },
      [&](energies& e) {
        e.intra = sim.moving.predict(own_of(box.positions), own_of(box.forces));
        std::fill(box.forces.begin() + own, box.forces.end(), sites{});
        for (int r = 0; r < sojourn::rank_count(); ++r) {
          const auto i = static_cast<std::size_t>(r);
          if (near.given[i].empty()) continue;
          values.clear();
          for (const std::uint32_t place : near.given[i]) values.push_back(box.positions[place]);
          sojourn::rpc_ff(
              r,
              [](std::uint32_t slot, sojourn::view<sites> v) {
                mailbox::here->take_positions(slot, v);
              },
              near.given_slot[i], sojourn::view(values));
        }
        e.inter = add_pairs(sim.chosen, sim.space, near, with::own, box.positions, box.forces);
        box.positions_came.wait(givers);
        e.inter += add_pairs(sim.chosen, sim.space, near, with::others, box.positions, box.forces);
        for (int r = 0; r < sojourn::rank_count(); ++r) {
          const auto i = static_cast<std::size_t>(r);
          if (near.wanted[i].empty()) continue;
          sojourn::rpc_ff(
              r, [](int source, sojourn::view<sites> v) { mailbox::here->add_forces(source, v); },
              sojourn::rank_me(),
              sojourn::view<sites>(box.forces.data() + near.first_slot[i], near.wanted[i].size()));
        }
        box.forces_came.wait(takers);
        e.kinetic = sim.moving.correct(own_of(box.forces));
      });
}

}  // namespace

result run_rpc(const settings& chosen) {
  simulation sim(chosen);
  return chosen.variant == "atomic" ? run_atomic(sim) : run_prefetch(sim);
}

}  // namespace apps::water
