// SPDX-License-Identifier: Apache-2.0
// Water with a grid of cells, as in spatial.cpp, with more locality and less synchronisation, after
// the program that the paper calls Shpatial. A thread's molecules lie in pages of its own, cell
// after cell: of what a thread has, others read only the positions in cells next to theirs, and the
// molecules that come to them. Molecules move in memory of the thread alone; those that leave its
// cells it puts into its outbox, where their new threads find them. There are two barriers in a
// step and, in the whole run, one lock for each thread, to add up energies.
#include <algorithm>
#include <vector>

#include "nine/kernel/applications.hpp"
#include "nine/kernel/share.hpp"
#include "nine/kernel/water_cells.hpp"
#include "nine/kernel/water_program.hpp"

namespace apps::nine {
namespace water {
namespace {

class spatial_local final : public program {
 public:
  explicit spatial_local(const input& in) : program(in), grid_(in) {}

  void prepare(machine& m) override {
    owner_.resize(grid_.cells());
    stores_.clear();
    for (int t = 0; t < m.threads(); ++t) {
      const share cells = share_of(grid_.cells(), m.threads(), t);
      for (std::size_t c = cells.first; c < cells.end; ++c) owner_[c] = static_cast<std::size_t>(t);
      // There is room for all molecules in one thread; pages that are never touched cost nothing.
      const std::size_t n = in_.molecules();
      stores_.push_back(
          {.cells = cells,
           .first = m.array<std::size_t>(cells.end - cells.first + 1, "first of cells"),
           .positions = m.array<sites>(n, "positions"),
           .rest = m.array<not_shown>(n, "velocities"),
           .outbox = m.array<molecule>(n + 1, "leaving molecules")});
    }
    history_ = m.array<energies>(in_.steps + 1, "energies");
  }

  void run(machine& m, int thread) override {
    const store& mine = stores_[static_cast<std::size_t>(thread)];
    const std::vector<std::size_t> neighbours = neighbours_of(mine);
    const interaction act(in_);
    std::vector<molecule> here;  // the molecules of this thread, in any order
    for (std::size_t i = 0; i < in_.molecules(); ++i) {
      const sites position = first_position(in_, i);
      const std::size_t cell = grid_.cell_of(position);
      if (mine.has(cell)) here.push_back({i, cell, position, first_velocity(i)});
    }
    std::vector<sites> forces;
    std::vector<energies> history(in_.steps + 1);
    for (std::size_t step = 0; step <= in_.steps; ++step) {
      arrange(here, mine);
      m.barrier(thread);  // All positions can be read.
      energies& e = history[step];
      compute_forces(mine, act, forces, e);
      for (std::size_t i = 0; i < forces.size(); ++i) {
        sites& velocity = mine.rest[i].velocity;
        if (step > 0) kick(velocity, forces[i], in_.step_fs / 2);
        e.kinetic += kinetic_energy(velocity);
      }
      if (step == in_.steps) break;
      move(mine, forces, here);
      m.barrier(thread);  // Nobody reads positions any more; all outboxes are complete.
      for (const std::size_t t : neighbours) {
        const store& theirs = stores_[t];
        for (std::size_t i = 0; theirs.outbox[i].cell != no_cell; ++i) {
          if (mine.has(theirs.outbox[i].cell)) here.push_back(theirs.outbox[i]);
        }
      }
    }
    m.lock(thread, 0);
    for (std::size_t step = 0; step < history.size(); ++step) history_[step] += history[step];
    m.unlock(thread, 0);
  }

  results gather() const override {
    results r;
    r.positions.resize(in_.molecules());
    r.velocities.resize(in_.molecules());
    for (const store& s : stores_) {
      // Numbers that are out of range would be errors of the run, and are told by what is missing.
      for (std::size_t i = 0; i < std::min(s.count(), in_.molecules()); ++i) {
        const std::size_t number = std::min(s.rest[i].number, in_.molecules() - 1);
        r.positions[number] = s.positions[i];
        r.velocities[number] = s.rest[i].velocity;
      }
    }
    r.history.assign(history_.begin(), history_.end());
    return r;
  }

 private:
  struct molecule {
    std::size_t number;
    std::size_t cell;
    sites position;
    sites velocity;
  };
  static constexpr std::size_t no_cell = ~std::size_t{0};
  /// What no other thread reads of a molecule.
  struct not_shown {
    std::size_t number;
    sites velocity;
  };
  /// The molecules of a thread, in pages of its own.
  struct store {
    share cells;
    std::span<std::size_t> first;  ///< Where each cell begins in the next two, and the end.
    std::span<sites> positions;
    std::span<not_shown> rest;
    std::span<molecule> outbox;  ///< Those that leave; then one of no cell.

    bool has(std::size_t cell) const { return cell >= cells.first && cell < cells.end; }
    /// The places of the molecules in a cell, which must be of this thread.
    share in(std::size_t cell) const {
      return {first[cell - cells.first], first[cell - cells.first + 1]};
    }
    std::size_t count() const { return first[cells.end - cells.first]; }
  };

  /// The threads that have a cell next to one of this thread: molecules come from these only,
  /// because in one step they move by less than a cell.
  std::vector<std::size_t> neighbours_of(const store& mine) const {
    std::vector<std::size_t> found;
    for (std::size_t c = mine.cells.first; c < mine.cells.end; ++c) {
      for (const std::size_t d : grid_.around(c)) {
        if (!mine.has(d)) found.push_back(owner_[d]);
      }
    }
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  /// Writes the thread's molecules into its pages, cell after cell.
  static void arrange(const std::vector<molecule>& here, const store& mine) {
    std::vector<std::size_t> next(mine.first.size());
    for (const molecule& p : here) ++next[p.cell - mine.cells.first + 1];
    for (std::size_t c = 1; c < next.size(); ++c) next[c] += next[c - 1];
    std::ranges::copy(next, mine.first.begin());
    for (const molecule& p : here) {
      const std::size_t i = next[p.cell - mine.cells.first]++;
      mine.positions[i] = p.position;
      mine.rest[i] = {p.number, p.velocity};
    }
  }

  /// All forces on the thread's molecules, and its part of the potential energy.
  void compute_forces(const store& mine, const interaction& act, std::vector<sites>& forces,
                      energies& e) const {
    forces.assign(mine.count(), {});
    for (std::size_t i = 0; i < forces.size(); ++i) {
      e.intra += act_inside(mine.positions[i], forces[i]);
    }
    for (std::size_t c = mine.cells.first; c < mine.cells.end; ++c) {
      const share own = mine.in(c);
      for (std::size_t i = own.first; i < own.end; ++i) {
        for (std::size_t j = i + 1; j < own.end; ++j) {
          e.inter += act(mine.positions[i], mine.positions[j], forces[i], forces[j]);
        }
      }
      for (const std::size_t d : grid_.around(c)) {
        const store& other = stores_[owner_[d]];
        const share near = other.in(d);
        if (!mine.has(d)) {
          sites theirs;  // What acts on them their own thread computes, and half of the energy.
          for (std::size_t i = own.first; i < own.end; ++i) {
            for (std::size_t j = near.first; j < near.end; ++j) {
              e.inter += 0.5 * act(mine.positions[i], other.positions[j], forces[i], theirs);
            }
          }
        } else if (d > c) {
          for (std::size_t i = own.first; i < own.end; ++i) {
            for (std::size_t j = near.first; j < near.end; ++j) {
              e.inter += act(mine.positions[i], mine.positions[j], forces[i], forces[j]);
            }
          }
        }
      }
    }
  }

  /// Moves the thread's molecules, without touching the positions that others may still read: to
  /// `here` those that stay with the thread, to its outbox the others.
  void move(const store& mine, const std::vector<sites>& forces,
            std::vector<molecule>& here) const {
    here.clear();
    std::size_t leaving = 0;
    for (std::size_t i = 0; i < forces.size(); ++i) {
      molecule p{mine.rest[i].number, 0, mine.positions[i], mine.rest[i].velocity};
      kick(p.velocity, forces[i], in_.step_fs / 2);
      drift(in_, p.position, p.velocity, in_.step_fs);
      p.cell = grid_.cell_of(p.position);
      if (mine.has(p.cell)) {
        here.push_back(p);
      } else {
        mine.outbox[leaving++] = p;
      }
    }
    mine.outbox[leaving].cell = no_cell;
  }

  const cell_grid grid_;
  std::vector<std::size_t> owner_;  ///< Of each cell.
  std::vector<store> stores_;       ///< Of each thread.
  std::span<energies> history_;
};

}  // namespace

std::unique_ptr<program> make_spatial_local(const input& in) {
  return std::make_unique<spatial_local>(in);
}

}  // namespace water

std::unique_ptr<application> make_spatial_local(problem_size size) {
  return water::make_spatial_local(water::cells_input(size));
}

}  // namespace apps::nine
