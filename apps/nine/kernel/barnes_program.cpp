// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/barnes_program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/random.hpp"

namespace apps::nine::barnes {
namespace {

double length(const vec& v) { return std::sqrt(dot(v, v)); }

/// A random direction, as long as `long_`.
vec anywhere(random_source& random, double long_) {
  for (;;) {
    const vec v{2 * random.fraction() - 1, 2 * random.fraction() - 1, 2 * random.fraction() - 1};
    const double r = length(v);
    if (r > 0.1 && r < 1) return long_ / r * v;
  }
}

/// A cell with a list of its particles, of which all else is computed without its children's help.
struct node {
  node(const input& in, const std::vector<particle>& all, std::vector<std::size_t> own,
       const vec& cell_middle, double half, int level)
      : members(std::move(own)) {
    what.mass = static_cast<double>(members.size()) * in.mass();
    for (const std::size_t i : members) what.center += in.mass() / what.mass * all[i].position;
    for (const std::size_t i : members) {
      what.add_quadrupole(in.mass(), all[i].position - what.center);
    }
    opening2 = opening_distance2(in, half, cell_middle, what.center);
    if (members.size() <= leaf_max || level == levels) return;
    std::array<std::vector<std::size_t>, 8> parts;
    for (const std::size_t i : members) {
      const vec& p = all[i].position;
      parts[(p.x >= cell_middle.x ? 1u : 0u) + (p.y >= cell_middle.y ? 2u : 0u) +
            (p.z >= cell_middle.z ? 4u : 0u)]
          .push_back(i);
    }
    for (std::size_t o = 0; o < 8; ++o) {
      if (parts[o].empty()) continue;
      const auto way = [&](std::size_t bit) { return (o & bit) != 0 ? half / 2 : -half / 2; };
      children.emplace_back(in, all, std::move(parts[o]), cell_middle + vec{way(1), way(2), way(4)},
                            half / 2, level + 1);
    }
  }

  void act(const input& in, const std::vector<particle>& all, const vec& where, field& f) const {
    const vec apart = what.center - where;
    if (dot(apart, apart) > opening2) {
      add_cell(f, in.softening, what, apart);
    } else if (children.empty()) {
      for (const std::size_t i : members) {
        add_point(f, in.softening, in.mass(), all[i].position - where);
      }
    } else {
      for (const node& child : children) child.act(in, all, where, f);
    }
  }

  std::vector<std::size_t> members;
  std::vector<node> children;
  moments what;
  double opening2 = 0;
};

/// Computes the accelerations. Returns the potential energy.
double accelerate(const input& in, std::vector<particle>& all) {
  double reach = 0;
  std::vector<std::size_t> members;
  for (const particle& p : all) {
    reach =
        std::max({reach, std::abs(p.position.x), std::abs(p.position.y), std::abs(p.position.z)});
    members.push_back(members.size());
  }
  const node tree(in, all, std::move(members), {}, half_side(reach), 0);
  double energy = 0;
  for (particle& p : all) {
    field f;
    tree.act(in, all, p.position, f);
    p.acceleration = f.acceleration;
    // Without what a particle is to itself.
    energy += 0.5 * in.mass() * (f.potential + in.mass() / in.softening);
  }
  return energy;
}

double kinetic_energy(const input& in, const std::vector<particle>& all) {
  double energy = 0;
  for (const particle& p : all) energy += 0.5 * in.mass() * dot(p.velocity, p.velocity);
  return energy;
}

}  // namespace

particle first_particle(std::size_t number) {
  random_source pair(mix64(number / 2));
  // The radius within which is a random share of the mass, no more than lies within 3.
  const double share = 27 / std::pow(10, 1.5) * (1 - pair.fraction());
  const double radius = 1 / std::sqrt(std::pow(share, -2.0 / 3) - 1);
  // The share of the speed of escape is distributed as q² (1 - q²)^3.5, which is below 0.1.
  double q = 0;
  do q = pair.fraction();
  while (0.1 * pair.fraction() > q * q * std::pow(1 - q * q, 3.5));
  const double escape = std::sqrt(2.0) * std::pow(1 + radius * radius, -0.25);
  const vec velocity = anywhere(pair, number % 2 == 0 ? q * escape : -q * escape);
  random_source own(~mix64(number));
  return {anywhere(own, radius), velocity, {}};
}

results simulate_alone(const input& in) {
  results r;
  for (std::size_t i = 0; i < in.particles; ++i) r.particles.push_back(first_particle(i));
  double potential = accelerate(in, r.particles);
  r.energy_before = potential + kinetic_energy(in, r.particles);
  for (std::size_t step = 0; step < in.steps; ++step) {
    for (particle& p : r.particles) {
      p.velocity += in.step / 2 * p.acceleration;
      p.position += in.step * p.velocity;
    }
    potential = accelerate(in, r.particles);
    for (particle& p : r.particles) p.velocity += in.step / 2 * p.acceleration;
  }
  r.energy_after = potential + kinetic_energy(in, r.particles);
  return r;
}

std::string difference(const results& found, const results& wanted) {
  // All that is compared is about 1. Sums are added up in another order.
  constexpr double tolerance = 1e-9;
  const auto differs = [](double apart) { return !(apart <= tolerance); };
  for (std::size_t i = 0; i < wanted.particles.size(); ++i) {
    const particle& a = found.particles[i];
    const particle& b = wanted.particles[i];
    const double position = length(a.position - b.position);
    const double velocity = length(a.velocity - b.velocity);
    const double acceleration = length(a.acceleration - b.acceleration);
    if (differs(position) || differs(velocity) || differs(acceleration)) {
      return fmt::format(
          "particle {} differs from that of one thread: its position by {}, its velocity by {}, "
          "its acceleration by {}",
          i, position, velocity, acceleration);
    }
  }
  if (differs(std::abs(found.energy_before - wanted.energy_before)) ||
      differs(std::abs(found.energy_after - wanted.energy_after))) {
    return fmt::format("the energy is {} and then {}, but one thread computes {} and {}",
                       found.energy_before, found.energy_after, wanted.energy_before,
                       wanted.energy_after);
  }
  return "";
}

std::string direct_difference(const input& in, const results& found) {
  constexpr std::size_t sample = 64;
  constexpr double tolerance = 0.02;  // of the acceleration; twice the worst with an opening of 0.7
  for (std::size_t k = 0; k < sample; ++k) {
    const std::size_t i = k * found.particles.size() / sample;
    const particle& p = found.particles[i];
    field f;
    for (const particle& other : found.particles) {
      add_point(f, in.softening, in.mass(), other.position - p.position);
    }
    const double apart = length(p.acceleration - f.acceleration);
    if (!(apart <= tolerance * length(f.acceleration))) {
      return fmt::format("the acceleration of particle {} is {} from that by all others, {}", i,
                         apart, length(f.acceleration));
    }
  }
  return "";
}

std::string program::check() const {
  const results found = gather();
  const std::string wrong = direct_difference(in_, found);
  return wrong.empty() ? difference(found, simulate_alone(in_)) : wrong;
}

double program::checksum() const {
  const results r = gather();
  double sum = r.energy_after;
  for (std::size_t i = 0; i < r.particles.size(); ++i) {
    // Particles have different weights, lest two be exchanged.
    const double weight = random_source(i).fraction();
    for (const vec& v :
         {r.particles[i].position, r.particles[i].velocity, r.particles[i].acceleration}) {
      sum += weight * (v.x + v.y + v.z);
    }
  }
  return sum;
}

}  // namespace apps::nine::barnes
