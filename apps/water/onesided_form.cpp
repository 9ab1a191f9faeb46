// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "water/simulation.hpp"

namespace apps::water {
namespace {

using sojourn::global_ptr;

/// This rank's molecules, where others read them, and what acts on them.
struct state {
  explicit state(const neighbourhood& n)
      : near(n),
        published(sojourn::make_array<sites>(sojourn::rank_me(), n.own)),
        of_rank(sojourn::all_gather(published)),
        forces(n.slots()) {
    here = this;
  }
  ~state() { sojourn::destroy_array(published, near.own); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  std::span<sites> positions() const { return {published.local(), near.own}; }
  std::span<sites> own_forces() { return std::span(forces).first(near.own); }

  const neighbourhood& near;
  const global_ptr<sites> published;
  const std::vector<global_ptr<sites>> of_rank;
  std::vector<sites> forces;  // by slot

  static inline state* here;
};

/// A load reads a molecule where a pair needs it; a bare message adds the force on it.
result run_atomic(simulation& sim) {
  const settings& s = sim.chosen;
  const int ranks = sojourn::rank_count();
  const std::uint32_t own = sim.near.own;
  const std::uint32_t first = sim.near.first;
  state mine(sim.near);
  std::vector<global_ptr<const sites>> all(s.molecules);
  for (std::uint32_t j = 0; j < s.molecules; ++j) {
    const int owner = owner_of(s, ranks, j);
    all[j] = mine.of_rank[static_cast<std::size_t>(owner)] + (j - first_at(s, ranks, owner));
  }
  force_counter counter;

  return run_steps(
      sim, [&] { return std::vector<sites>(mine.positions().begin(), mine.positions().end()); },
      [&](energies& e) {
        e.intra = sim.moving.predict(mine.positions(), mine.own_forces());
        sojourn::barrier();
        const std::span<sites> here = mine.positions();
        const std::span<sites> forces = mine.own_forces();
        bool in_reach = false;
        for (std::uint32_t i = 0; i < own; ++i) {
          for (std::uint32_t k = 1; k <= partners(s, first + i); ++k) {
            const std::uint32_t j = (first + i + k) % s.molecules;
            const global_ptr<const sites> p = all[j];
            if (p.is_local()) {
              e.inter +=
                  interact(sim.space, here[i], *p.local(), forces[i], forces[j - first], &in_reach);
              continue;
            }
            // Not load(), see em3d.
            const sites position = sojourn::load_async(p).get();
            sites force;
            e.inter += interact(sim.space, here[i], position, forces[i], force, &in_reach);
            if (!in_reach) continue;
            counter.sent(p.where());
            sojourn::rpc_ff(
                p.where(),
                [](std::uint32_t molecule, const sites& f) {
                  state::here->forces[molecule - state::here->near.first] += f;
                  force_counter::here->arrived();
                },
                j, force);
          }
        }
        counter.wait();
        e.kinetic = sim.moving.correct(forces);
      });
}

/// Gets bring all positions that a rank needs of another, and a put returns all forces, for their
/// owner to add.
result run_prefetch(simulation& sim) {
  const neighbourhood& near = sim.near;
  const auto own = near.own;
  state mine(near);
  std::vector<sites> positions(near.slots());
  // Room at each rank for what it is given by each other one.
  const auto me = static_cast<std::size_t>(sojourn::rank_me());
  std::vector<global_ptr<sites>> room;
  for (const auto& places : near.given) {
    room.push_back(sojourn::make_array<sites>(sojourn::rank_me(), places.size()));
  }
  const auto rooms = sojourn::all_gather(room);
  sojourn::completions done;

  const result all_steps = run_steps(
      sim, [&] { return std::vector<sites>(mine.positions().begin(), mine.positions().end()); },
      [&](energies& e) {
        e.intra = sim.moving.predict(mine.positions(), mine.own_forces());
        std::ranges::copy(mine.positions(), positions.begin());
        std::fill(mine.forces.begin() + own, mine.forces.end(), sites{});
        sojourn::barrier();
        for (std::size_t r = 0; r < near.wanted.size(); ++r) {
          const auto& places = near.wanted[r];
          const std::span<sites> into = std::span(positions).subspan(near.first_slot[r]);
          for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
            // As many as lie next to each other: nearly always all.
            for (end = begin + 1; end < places.size() && places[end] == places[end - 1] + 1;) ++end;
            sojourn::get(mine.of_rank[r] + places[begin], into.subspan(begin, end - begin), done);
          }
        }
        e.inter = add_pairs(sim.chosen, sim.space, near, with::own, positions, mine.forces);
        done.wait();
        e.inter += add_pairs(sim.chosen, sim.space, near, with::others, positions, mine.forces);
        for (std::size_t r = 0; r < near.wanted.size(); ++r) {
          if (near.wanted[r].empty()) continue;
          sojourn::put(std::span<const sites>(mine.forces)
                           .subspan(near.first_slot[r], near.wanted[r].size()),
                       rooms[r][me], done);
        }
        done.wait();
        sojourn::barrier();
        for (std::size_t r = 0; r < near.given.size(); ++r) {
          const sites* force = room[r].local();
          for (const std::uint32_t place : near.given[r]) mine.forces[place] += *force++;
        }
        e.kinetic = sim.moving.correct(mine.own_forces());
      });
  for (std::size_t i = 0; i < room.size(); ++i) {
    sojourn::destroy_array(room[i], near.given[i].size());
  }
  return all_steps;
}

}  // namespace

result run_onesided(const settings& chosen) {
  simulation sim(chosen);
  return chosen.variant == "atomic" ? run_atomic(sim) : run_prefetch(sim);
}

}  // namespace apps::water
