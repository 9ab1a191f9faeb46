// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/water_program.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/random.hpp"

namespace apps::nine::water {
namespace {

constexpr double boltzmann = 1.987204e-3;  // kcal/mol/K
constexpr double kelvin = 300;

/// From Maxwell's distribution, or close: sums of twelve even ones.
double normal(random_source& random) {
  double even = -6;
  for (int i = 0; i < 12; ++i) even += random.fraction();
  return even;
}

/// The greatest difference of an atom's coordinates, of which one may have come in on the other
/// side of a cube of side `period`.
double greatest_difference(const sites& a, const sites& b, double period) {
  double greatest = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const vec d = a.at[i] - b.at[i];
    for (const double x : {d.x, d.y, d.z}) {
      const double apart = std::abs(std::remainder(x, period));
      // A difference that is no number counts as the greatest.
      if (!(apart <= greatest)) greatest = apart;
    }
  }
  return greatest;
}

}  // namespace

sites first_position(const input& in, std::size_t molecule) {
  const std::size_t n = in.per_side;
  const std::size_t x = molecule % n;
  const std::size_t y = molecule / n % n;
  const std::size_t z = molecule / (n * n);
  // Just inside the cube: soon some molecules leave it, and come in on the other side.
  const auto along = [](std::size_t k) { return spacing * (static_cast<double>(k) + 0.98); };
  const vec oxygen{along(x), along(y), along(z)};
  const double way = (x + y + z) % 2 == 0 ? bond_length : -bond_length;
  const double toward = way * std::cos(angle_rest / 2);
  const double across = way * std::sin(angle_rest / 2);
  return {{oxygen, oxygen + vec{toward, across, 0}, oxygen + vec{toward, -across, 0}}};
}

sites first_velocity(std::size_t molecule) {
  random_source random(mix64(molecule / 2));
  const double sign = molecule % 2 == 0 ? 1 : -1;
  sites velocity;
  for (std::size_t i = 0; i < 3; ++i) {
    const double speed = sign * std::sqrt(boltzmann * kelvin * acceleration / mass[i]);
    velocity.at[i] = {speed * normal(random), speed * normal(random), speed * normal(random)};
  }
  return velocity;
}

results simulate_alone(const input& in) {
  const std::size_t n = in.molecules();
  const interaction act(in);
  results r;
  for (std::size_t i = 0; i < n; ++i) {
    r.positions.push_back(first_position(in, i));
    r.velocities.push_back(first_velocity(i));
  }
  std::vector<sites> forces;
  const auto compute_forces = [&] {
    energies e;
    forces.assign(n, {});
    for (std::size_t i = 0; i < n; ++i) {
      e.intra += act_inside(r.positions[i], forces[i]);
      for (std::size_t j = i + 1; j < n; ++j) {
        e.inter += act(r.positions[i], r.positions[j], forces[i], forces[j]);
      }
    }
    return e;
  };
  energies e = compute_forces();
  for (std::size_t step = 0;; ++step) {
    for (const sites& v : r.velocities) e.kinetic += kinetic_energy(v);
    r.history.push_back(e);
    if (step == in.steps) return r;
    for (std::size_t i = 0; i < n; ++i) {
      kick(r.velocities[i], forces[i], in.step_fs / 2);
      drift(in, r.positions[i], r.velocities[i], in.step_fs);
    }
    e = compute_forces();
    for (std::size_t i = 0; i < n; ++i) kick(r.velocities[i], forces[i], in.step_fs / 2);
  }
}

std::string difference(const input& in, const results& found, const results& wanted) {
  // Sums are added up in another order; how far that takes two runs apart grows with time.
  constexpr double tolerance = 1e-8;
  for (std::size_t step = 0; step < wanted.history.size(); ++step) {
    const energies& a = found.history[step];
    const energies& b = wanted.history[step];
    const double scale = std::abs(b.intra) + std::abs(b.inter) + std::abs(b.kinetic);
    const double apart =
        std::abs(a.intra - b.intra) + std::abs(a.inter - b.inter) + std::abs(a.kinetic - b.kinetic);
    if (!(apart <= tolerance * scale)) {
      return fmt::format(
          "after step {} the energies are {}, {} and {} kcal/mol (in molecules, between them, "
          "kinetic), but one loop computes {}, {} and {}",
          step, a.intra, a.inter, a.kinetic, b.intra, b.inter, b.kinetic);
    }
  }
  const double side = in.side();
  for (std::size_t i = 0; i < wanted.positions.size(); ++i) {
    const double apart = greatest_difference(found.positions[i], wanted.positions[i], side);
    if (!(apart <= tolerance)) {
      return fmt::format("an atom of molecule {} is {} Å from where one loop puts it", i, apart);
    }
    const double faster = greatest_difference(found.velocities[i], wanted.velocities[i], side);
    if (!(faster <= tolerance)) {
      return fmt::format(
          "the velocity of an atom of molecule {} is {} Å/fs from what one loop computes", i,
          faster);
    }
  }
  return "";
}

std::string program::check() const { return difference(in_, gather(), simulate_alone(in_)); }

double program::checksum() const {
  const results r = gather();
  double sum = r.history.back().total();
  const double turn = 2 * 3.14159265358979323846 / in_.side();
  for (std::size_t i = 0; i < r.positions.size(); ++i) {
    // Molecules have different weights, lest two be exchanged. The cosines make the two sides of
    // the cube one.
    const double weight = random_source(i).fraction();
    for (std::size_t atom = 0; atom < 3; ++atom) {
      const vec p = turn * r.positions[i].at[atom];
      const vec v = r.velocities[i].at[atom];
      sum += weight * (std::cos(p.x) + std::cos(p.y) + std::cos(p.z) + v.x + v.y + v.z);
    }
  }
  return sum;
}

}  // namespace apps::nine::water
