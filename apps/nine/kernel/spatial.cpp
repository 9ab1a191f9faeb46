// SPDX-License-Identifier: Apache-2.0
// Water with a grid of cells, in the manner of SPLASH-2's Water-Spatial. A molecule stays where it
// lies in memory; each cell has a linked list of those that are in it. Thread t has the t-th part
// of the cells: it moves their molecules and computes all forces on them; only pairs of molecules
// of two threads are computed twice. A molecule that comes to another cell is put into its list
// under a lock of that cell.
#include <vector>

#include "nine/kernel/applications.hpp"
#include "nine/kernel/share.hpp"
#include "nine/kernel/water_cells.hpp"
#include "nine/kernel/water_program.hpp"

namespace apps::nine {
namespace water {
namespace {

class spatial final : public program {
 public:
  explicit spatial(const input& in) : program(in), grid_(in) {}

  void prepare(machine& m) override {
    molecules_ = m.array<molecule>(in_.molecules(), "molecules");
    first_ = m.array<std::size_t>(grid_.cells(), "cells");
    history_ = m.array<energies>(in_.steps + 1, "energies");
  }

  void run(machine& m, int thread) override {
    const share cells = share_of(grid_.cells(), m.threads(), thread);
    // The lattice has the order of the cells: a thread makes the molecules of its cells, give or
    // take a few.
    const share made = share_of(in_.molecules(), m.threads(), thread);
    std::vector<std::size_t> in_motion;  // from one list to another
    for (std::size_t i = made.first; i < made.end; ++i) {
      molecules_[i].position = first_position(in_, i);
      molecules_[i].velocity = first_velocity(i);
      in_motion.push_back(i);
    }
    for (std::size_t step = 0;; ++step) {
      for (const std::size_t i : in_motion) enter(m, thread, i);
      in_motion.clear();
      m.barrier(thread);  // The lists are complete.
      energies e = compute_forces(cells);
      for_each(cells, [&](molecule& p) {
        if (step > 0) kick(p.velocity, p.force, in_.step_fs / 2);
        e.kinetic += kinetic_energy(p.velocity);
      });
      m.lock(thread, energy_lock);
      history_[step] += e;
      m.unlock(thread, energy_lock);
      if (step == in_.steps) return;
      m.barrier(thread);  // Nobody reads positions any more.
      for_each(cells, [&](molecule& p) {
        kick(p.velocity, p.force, in_.step_fs / 2);
        drift(in_, p.position, p.velocity, in_.step_fs);
      });
      take_out(cells, in_motion);
      m.barrier(thread);  // Nobody walks along a list any more.
    }
  }

  results gather() const override {
    results r;
    for (const molecule& p : molecules_) {
      r.positions.push_back(p.position);
      r.velocities.push_back(p.velocity);
    }
    r.history.assign(history_.begin(), history_.end());
    return r;
  }

 private:
  struct molecule {
    sites position;
    sites velocity;
    sites force;
    std::size_t next;  ///< In the list of its cell, as in `first_`.
  };

  static constexpr int energy_lock = machine::locks_max - 1;
  static int lock_of(std::size_t cell) { return static_cast<int>(cell) % energy_lock; }

  /// Calls f for each molecule of the list that begins with `link`: zero at its end, else the
  /// number of a molecule, counted from one. Shared memory begins as zeros, and so as empty lists.
  template <class F>
  void for_list(std::size_t link, const F& f) const {
    while (link != 0) {
      molecule& p = molecules_[link - 1];
      f(p);
      link = p.next;
    }
  }
  template <class F>
  void for_each(const share& cells, const F& f) const {
    for (std::size_t c = cells.first; c < cells.end; ++c) for_list(first_[c], f);
  }

  /// Puts molecule i into the list of the cell where it is.
  void enter(machine& m, int thread, std::size_t i) {
    const std::size_t cell = grid_.cell_of(molecules_[i].position);
    m.lock(thread, lock_of(cell));
    molecules_[i].next = first_[cell];
    first_[cell] = i + 1;
    m.unlock(thread, lock_of(cell));
  }

  /// Takes those that have left their cells out of the lists.
  void take_out(const share& cells, std::vector<std::size_t>& out) {
    for (std::size_t c = cells.first; c < cells.end; ++c) {
      std::size_t* link = &first_[c];
      while (*link != 0) {
        molecule& p = molecules_[*link - 1];
        if (grid_.cell_of(p.position) == c) {
          link = &p.next;
        } else {
          out.push_back(*link - 1);
          *link = p.next;
        }
      }
    }
  }

  /// All forces on the molecules of these cells, and their part of the potential energy.
  energies compute_forces(const share& cells) const {
    const interaction act(in_);
    energies e;
    for_each(cells, [&](molecule& p) {
      p.force = {};
      e.intra += act_inside(p.position, p.force);
    });
    for (std::size_t c = cells.first; c < cells.end; ++c) {
      const auto around = grid_.around(c);
      for_list(first_[c], [&](molecule& p) {
        const auto with = [&](molecule& q) {
          e.inter += act(p.position, q.position, p.force, q.force);
        };
        const auto with_others = [&](const molecule& q) {
          sites
              theirs;  // What acts on q its own thread computes, and the other half of the energy.
          e.inter += 0.5 * act(p.position, q.position, p.force, theirs);
        };
        for_list(p.next, with);
        for (const std::size_t d : around) {
          if (d < cells.first || d >= cells.end) {
            for_list(first_[d], with_others);
          } else if (d > c) {
            for_list(first_[d], with);
          }
        }
      });
    }
    return e;
  }

  const cell_grid grid_;
  std::span<molecule> molecules_;
  std::span<std::size_t> first_;  ///< Where the list of each cell begins.
  std::span<energies> history_;
};

}  // namespace

std::unique_ptr<program> make_spatial(const input& in) { return std::make_unique<spatial>(in); }

}  // namespace water

std::unique_ptr<application> make_spatial(problem_size size) {
  return water::make_spatial(water::cells_input(size));
}

}  // namespace apps::nine
