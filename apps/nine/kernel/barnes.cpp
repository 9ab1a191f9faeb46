// SPDX-License-Identifier: Apache-2.0
// Gravity among particles by the method of Barnes and Hut, in the manner of SPLASH-2's Barnes, with
// barriers alone. In each step the particles are sorted by the places of the smallest cells in the
// order of Morton, and dealt out to threads in that order, so that each has as much work as the
// others if the last step is a guide: what a thread has is contiguous in memory, and near in space.
// A cell of the tree that lies between the bounds of a thread is built by that thread. The few that
// reach over bounds are built by thread 0, as the paper's version makes some small sections serial
// in order to synchronise less. The tree is the same for any number of threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "nine/kernel/applications.hpp"
#include "nine/kernel/barnes_program.hpp"
#include "nine/kernel/share.hpp"

namespace apps::nine {
namespace barnes {
namespace {

/// The place of a smallest cell in the order of Morton: three bits for each level, from the top.
using place = std::uint64_t;

/// Puts two zero bits between any two of 21.
place spread(std::uint64_t x) {
  x = (x | x << 32) & 0x001f00000000ffffu;
  x = (x | x << 16) & 0x001f0000ff0000ffu;
  x = (x | x << 8) & 0x100f00f00f00f00fu;
  x = (x | x << 4) & 0x10c30c30c30c30c3u;
  return (x | x << 2) & 0x1249249249249249u;
}

place place_of(const vec& position, double half) {
  constexpr double cells = 1u << levels;
  const auto along = [&](double x) {
    // What is just below the upper bound may be rounded to it.
    return static_cast<std::uint64_t>(std::min((x / half + 1) / 2 * cells, cells - 1));
  };
  return spread(along(position.x)) | spread(along(position.y)) << 1 |
         spread(along(position.z)) << 2;
}

/// A cube of the tree, and which places lie in it.
struct cube {
  vec middle;
  double half;
  int level = 0;
  place begin = 0;

  place size() const { return place{1} << (3 * (levels - level)); }
  place end() const { return begin + size(); }
  cube child(unsigned octant) const {
    const auto way = [&](unsigned bit) { return (octant & bit) != 0 ? half / 2 : -half / 2; };
    return {middle + vec{way(1), way(2), way(4)}, half / 2, level + 1,
            begin + octant * (size() / 8)};
  }
  bool is_divided(std::size_t particles) const { return particles > leaf_max && level < levels; }
};

constexpr std::uint32_t none = ~0u;

/// A cell of the tree: 128 bytes, so none lies on two pages.
struct cell {
  moments what;
  double opening2;      ///< The square of the distance from which it is one.
  std::uint32_t first;  ///< Its particles are contiguous.
  std::uint32_t count;
  std::array<std::uint32_t, 8> children;  ///< Those with particles, then `none`; in a leaf, none.
};
static_assert(sizeof(cell) == 128);

/// A particle on its way to the thread that will have it.
struct traveller {
  place where;
  vec position;
  vec velocity;
  std::uint32_t number;
  std::uint32_t cost;  ///< How many cells and particles have been looked at for it.

  friend bool operator<(const traveller& a, const traveller& b) {
    return a.where != b.where ? a.where < b.where : a.number < b.number;
  }
};

/// Some consecutive travellers of a thread, in the order of their places.
struct sample {
  place first;
  double cost;
};
constexpr std::size_t samples = 64;  ///< Of each thread.

/// A cell that lies between the bounds of a thread, while the cell above it does not.
struct root {
  place begin;
  int level;
  std::uint32_t index;
};
/// On each level below the first a bound has seven neighbours of a cell at most.
constexpr std::size_t roots_max = 2 * 7 * levels;

class barnes final : public program {
 public:
  using program::program;

  void prepare(machine& m) override {
    const std::size_t n = in_.particles;
    travellers_ = m.array<traveller>(n, "travellers");
    positions_ = m.array<vec>(n, "positions");
    outcomes_ = m.array<outcome>(n, "velocities and accelerations");
    energies_ = m.array<double>(2, "energies");
    // Room for more cells than any number of particles that are not put there on purpose need;
    // pages that are never touched cost nothing. The last part is for cells over bounds.
    cells_each_ = (n + 31) / 32 * 32;
    cells_ = m.array<cell>((static_cast<std::size_t>(m.threads()) + 1) * cells_each_, "cells");
    tree_ = m.array<std::uint32_t>(1, "root of the tree");
    desks_.clear();
    for (int t = 0; t < m.threads(); ++t) {
      desks_.push_back({m.array<sample>(samples, "samples"),
                        m.array<std::size_t>(static_cast<std::size_t>(m.threads()) + 1, "bounds"),
                        m.array<root>(roots_max + 1, "roots")});
    }
  }

  void run(machine& m, int thread) override;

  results gather() const override {
    results r;
    r.particles.resize(in_.particles);
    for (std::size_t i = 0; i < in_.particles; ++i) {
      // A number that is out of range would be an error of the run, and is told by what is missing.
      const std::size_t number = std::min<std::size_t>(outcomes_[i].number, in_.particles - 1);
      r.particles[number] = {positions_[i], outcomes_[i].velocity, outcomes_[i].acceleration};
    }
    r.energy_before = energies_[0];
    r.energy_after = energies_[1];
    return r;
  }

 private:
  struct outcome {
    vec velocity;
    vec acceleration;
    std::size_t number;
  };
  /// What a thread tells the others in a step, in pages of its own.
  struct desk {
    std::span<sample> samples;
    std::span<std::size_t> bounds;  ///< Where its travellers to each thread begin, and the end.
    std::span<root> roots;          ///< Then one without an index.
  };
  /// Where a thread, or thread 0 for all, puts its cells.
  struct cell_store {
    std::size_t next;
    std::size_t end;
  };
  /// The particles that a thread has in a step.
  struct holding {
    share at{};                   ///< Where they are in the order of all.
    std::vector<traveller> here;  ///< These, in order.
    place begin = 0;              ///< The thread's bounds.
    place end = 0;
  };

  void make_tree(machine& m, int thread, holding& mine) const;
  double reach_of(const share& own) const;
  void take_samples(const share& own, const desk& mine) const;
  std::vector<place> choose_bounds() const;
  void take_in(std::size_t thread, const std::vector<place>& bounds, holding& mine) const;
  void build_roots(const holding& mine, const cube& where, share range, std::vector<root>& roots,
                   cell_store& store) const;
  std::uint32_t build(const holding& mine, const cube& where, share range, cell_store& store) const;
  std::uint32_t join(std::span<const root> roots, const cube& where, cell_store& store) const;
  std::uint32_t new_cell(std::size_t first, std::size_t count, cell_store& store) const;
  void sum_up(const cube& where, cell& c) const;
  field field_at(const vec& where, std::uint32_t& cost) const;

  cell_store store_of(std::size_t number) const {
    return {number * cells_each_, (number + 1) * cells_each_};
  }

  std::span<traveller> travellers_;  ///< A thread's lie where its particles were.
  std::span<vec> positions_;         ///< In order.
  std::span<outcome> outcomes_;      ///< Of the last step, in order.
  std::span<double> energies_;
  std::span<cell> cells_;
  std::span<std::uint32_t> tree_;
  std::size_t cells_each_ = 0;
  std::vector<desk> desks_;
};

void barnes::run(machine& m, int thread) {
  holding mine;
  mine.at = share_of(in_.particles, m.threads(), thread);
  for (std::size_t i = mine.at.first; i < mine.at.end; ++i) {
    const particle p = first_particle(i);
    travellers_[i] = {0, p.position, p.velocity, static_cast<std::uint32_t>(i), 1};
  }
  for (std::size_t step = 0; step <= in_.steps; ++step) {
    make_tree(m, thread, mine);
    const bool is_first = step == 0;
    const bool is_last = step == in_.steps;
    double energy = 0;
    for (std::size_t i = 0; i < mine.here.size(); ++i) {
      traveller& p = mine.here[i];
      p.cost = 0;
      const field f = field_at(p.position, p.cost);
      if (!is_first) p.velocity += in_.step / 2 * f.acceleration;
      energy += 0.5 * in_.mass() * (dot(p.velocity, p.velocity) + f.potential);
      if (is_last) {
        outcomes_[mine.at.first + i] = {p.velocity, f.acceleration, p.number};
      } else {
        p.velocity += in_.step / 2 * f.acceleration;
        p.position += in_.step * p.velocity;
        travellers_[mine.at.first + i] = p;
      }
    }
    if (is_first || is_last) {
      const double total = m.sum(thread, energy);
      if (thread == 0) energies_[is_first ? 0 : 1] = total;
    }
  }
}

/// Deals the particles out to threads anew, and builds the tree of all.
void barnes::make_tree(machine& m, int thread, holding& mine) const {
  const auto number = static_cast<std::size_t>(thread);
  const desk& told = desks_[number];
  const cube all{{}, half_side(m.greatest(thread, reach_of(mine.at)))};
  const auto own = travellers_.subspan(mine.at.first, mine.at.end - mine.at.first);
  for (traveller& p : own) p.where = place_of(p.position, all.half);
  std::ranges::sort(own, std::less<>());
  take_samples(mine.at, told);
  m.barrier(thread);  // All samples can be read.
  const std::vector<place> bounds = choose_bounds();
  for (std::size_t t = 0; t < bounds.size(); ++t) {
    const auto first = std::ranges::lower_bound(own, bounds[t], {}, &traveller::where);
    told.bounds[t] = mine.at.first + static_cast<std::size_t>(first - own.begin());
  }
  m.barrier(thread);  // All know where to find their particles.
  take_in(number, bounds, mine);
  cell_store store = store_of(number);
  std::vector<root> roots;
  build_roots(mine, all, {0, mine.here.size()}, roots, store);
  roots.push_back({0, 0, none});
  std::ranges::copy(roots, told.roots.begin());
  m.barrier(thread);  // All cells between bounds are there.
  if (thread == 0) {
    roots.clear();
    for (const desk& d : desks_) {
      roots.insert(roots.end(), d.roots.begin(), std::ranges::find(d.roots, none, &root::index));
    }
    cell_store over_bounds = store_of(desks_.size());
    tree_[0] = join(roots, all, over_bounds);
  }
  m.barrier(thread);  // The tree is complete.
}

/// The greatest coordinate of a thread's travellers, without sign.
double barnes::reach_of(const share& own) const {
  double reach = 0;
  for (std::size_t i = own.first; i < own.end; ++i) {
    const vec& p = travellers_[i].position;
    reach = std::max({reach, std::abs(p.x), std::abs(p.y), std::abs(p.z)});
  }
  return reach;
}

void barnes::take_samples(const share& own, const desk& mine) const {
  for (std::size_t k = 0; k < samples; ++k) {
    const auto at = [&](std::size_t s) { return own.first + s * (own.end - own.first) / samples; };
    sample& s = mine.samples[k];
    s = {0, 0};
    for (std::size_t i = at(k); i < at(k + 1); ++i) {
      if (i == at(k)) s.first = travellers_[i].where;
      s.cost += travellers_[i].cost;
    }
  }
}

/// The places that each thread's part begins with, and the end: the same on all threads.
std::vector<place> barnes::choose_bounds() const {
  std::vector<sample> all;
  double total = 0;
  for (const desk& d : desks_) {
    all.insert(all.end(), d.samples.begin(), d.samples.end());
    for (const sample& s : d.samples) total += s.cost;
  }
  std::ranges::sort(all, {}, &sample::first);
  std::vector<place> bounds{0};
  double before = 0;
  for (const sample& s : all) {
    while (bounds.size() < desks_.size() && before >= total * static_cast<double>(bounds.size()) /
                                                          static_cast<double>(desks_.size())) {
      bounds.push_back(s.first);
    }
    before += s.cost;
  }
  bounds.resize(desks_.size() + 1, cube{{}, 1}.end());
  return bounds;
}

/// Takes a thread's particles from where they are, and puts them into the order of all.
void barnes::take_in(std::size_t thread, const std::vector<place>& bounds, holding& mine) const {
  mine.at = {0, 0};
  mine.here.clear();
  for (const desk& d : desks_) {
    const std::size_t begin = d.bounds[thread];
    const std::size_t count = d.bounds[thread + 1] - begin;
    mine.at.first += begin - d.bounds[0];
    const auto coming = travellers_.subspan(begin, count);
    mine.here.insert(mine.here.end(), coming.begin(), coming.end());
  }
  mine.at.end = mine.at.first + mine.here.size();
  std::ranges::sort(mine.here, std::less<>());
  for (std::size_t i = 0; i < mine.here.size(); ++i) {
    positions_[mine.at.first + i] = mine.here[i].position;
  }
  mine.begin = bounds[thread];
  mine.end = bounds[thread + 1];
}

/// Calls f for each child of a cube that has particles, with the range of these.
template <class Range, class PlaceOf, class F>
void for_children(const Range& all, share range, const PlaceOf& place_of_element, const cube& where,
                  const F& f) {
  const auto begin = all.begin();
  std::size_t first = range.first;
  for (unsigned octant = 0; octant < 8 && first < range.end; ++octant) {
    const cube child = where.child(octant);
    const auto end = std::ranges::lower_bound(begin + static_cast<std::ptrdiff_t>(first),
                                              begin + static_cast<std::ptrdiff_t>(range.end),
                                              child.end(), {}, place_of_element);
    const auto next = static_cast<std::size_t>(end - begin);
    if (next > first) f(child, share{first, next});
    first = next;
  }
}

/// Builds what lies between the thread's bounds of a cube, in which a range of its particles is.
void barnes::build_roots(const holding& mine, const cube& where, share range,
                         std::vector<root>& roots, cell_store& store) const {
  if (range.first == range.end) return;
  if (where.begin >= mine.begin && where.end() <= mine.end) {
    roots.push_back({where.begin, where.level, build(mine, where, range, store)});
    return;
  }
  for_children(mine.here, range, &traveller::where, where, [&](const cube& child, share part) {
    build_roots(mine, child, part, roots, store);
  });
}

std::uint32_t barnes::build(const holding& mine, const cube& where, share range,
                            cell_store& store) const {
  const std::size_t count = range.end - range.first;
  const std::uint32_t index = new_cell(mine.at.first + range.first, count, store);
  cell& c = cells_[index];
  if (where.is_divided(count)) {
    std::size_t children = 0;
    for_children(mine.here, range, &traveller::where, where, [&](const cube& child, share part) {
      c.children[children++] = build(mine, child, part, store);
    });
  }
  sum_up(where, c);
  return index;
}

/// Builds the cells above the roots, of which some are in this cube.
std::uint32_t barnes::join(std::span<const root> roots, const cube& where,
                           cell_store& store) const {
  if (roots.size() == 1 && roots[0].level == where.level) return roots[0].index;
  std::size_t count = 0;
  for (const root& r : roots) count += cells_[r.index].count;
  const std::uint32_t index = new_cell(cells_[roots[0].index].first, count, store);
  cell& c = cells_[index];
  if (where.is_divided(count)) {
    std::size_t children = 0;
    for_children(roots, {0, roots.size()}, &root::begin, where, [&](const cube& child, share part) {
      c.children[children++] = join(roots.subspan(part.first, part.end - part.first), child, store);
    });
  }
  sum_up(where, c);
  return index;
}

std::uint32_t barnes::new_cell(std::size_t first, std::size_t count, cell_store& store) const {
  if (store.next == store.end) {
    throw std::length_error("barnes: the particles are too close for the room that cells have");
  }
  const auto index = static_cast<std::uint32_t>(store.next++);
  cell& c = cells_[index];
  c.what = {};
  c.first = static_cast<std::uint32_t>(first);
  c.count = static_cast<std::uint32_t>(count);
  c.children.fill(none);
  return index;
}

/// Computes the moments of a cell from its children, or from its particles.
void barnes::sum_up(const cube& where, cell& c) const {
  moments& what = c.what;
  what.mass = c.count * in_.mass();
  const auto particles = positions_.subspan(c.first, c.count);
  const auto children = std::span(c.children.begin(), std::ranges::find(c.children, none));
  if (children.empty()) {
    for (const vec& p : particles) what.center += in_.mass() / what.mass * p;
    for (const vec& p : particles) what.add_quadrupole(in_.mass(), p - what.center);
  }
  for (const std::uint32_t child : children) {
    const moments& part = cells_[child].what;
    what.center += part.mass / what.mass * part.center;
  }
  for (const std::uint32_t child : children) {
    const moments& part = cells_[child].what;
    what.add_quadrupole(part.mass, part.center - what.center);
    for (std::size_t k = 0; k < 6; ++k) what.quadrupole[k] += part.quadrupole[k];
  }
  c.opening2 = opening_distance2(in_, where.half, where.middle, what.center);
}

/// What acts on the particle that is there. Adds to `cost` what has been looked at.
field barnes::field_at(const vec& where, std::uint32_t& cost) const {
  // What a particle is to itself is a potential without a slope.
  field f{{}, in_.mass() / in_.softening};
  // On each level there are no more to come back to than seven neighbours of a cell.
  std::array<std::uint32_t, 7 * levels + 1> open;
  std::size_t count = 0;
  open[count++] = tree_[0];
  while (count > 0) {
    const cell& c = cells_[open[--count]];
    const vec apart = c.what.center - where;
    ++cost;
    if (dot(apart, apart) > c.opening2) {
      add_cell(f, in_.softening, c.what, apart);
    } else if (c.children[0] == none) {
      for (const vec& p : positions_.subspan(c.first, c.count)) {
        add_point(f, in_.softening, in_.mass(), p - where);
      }
      cost += c.count;
    } else {
      for (const std::uint32_t child : c.children) {
        if (child == none) break;
        open[count++] = child;
      }
    }
  }
  return f;
}

}  // namespace

std::unique_ptr<program> make_barnes(const input& in) { return std::make_unique<barnes>(in); }

}  // namespace barnes

std::unique_ptr<application> make_barnes(problem_size size) {
  return barnes::make_barnes(size == problem_size::small
                                 ? barnes::input{.particles = 1024, .steps = 4}
                                 : barnes::input{.particles = 16384, .steps = 15});
}

}  // namespace apps::nine
