// SPDX-License-Identifier: Apache-2.0
// Gravity among particles of equal mass, by the method of Barnes and Hut: what the particles are,
// what acts on them, and how the results are checked. The gravitational constant, the mass of all
// particles and the length scale of their distribution are 1.
// Sources: Barnes and Hut (1986); Aarseth, Hénon and Wielen (1974) for how the particles start;
// Barnes (1994) for which cells are far enough.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "nine/kernel/machine.hpp"
#include "nine/kernel/vector.hpp"

namespace apps::nine::barnes {

struct input {
  std::size_t particles;  ///< An even number.
  std::size_t steps;      ///< At least one.
  double step = 0.02;
  double opening = 0.7;  ///< A cell is far enough from opening⁻¹ times its side on; at most 1.
  double softening = 0.05;

  double mass() const { return 1 / static_cast<double>(particles); }  ///< Of a particle.
};

constexpr std::size_t leaf_max = 8;  ///< A cell of more particles is divided into eight …
constexpr int levels = 21;           ///< … unless it has been halved as often.

struct particle {
  vec position;
  vec velocity;
  vec acceleration;
};

/// Where a particle starts: in Plummer's model, within three times its length scale. Particles 2k
/// and 2k+1 are as far from the middle, with opposite velocities: the sum of all momenta is zero.
particle first_particle(std::size_t number);

/// Half the side of the cube around the origin that the tree divides: a power of two, so cells stay
/// where they are from step to step. `reach` is the greatest coordinate, without sign.
inline double half_side(double reach) {
  double half = 1;
  while (half <= reach) half *= 2;
  return half;
}

/// What the particles of a cell do to those far away: as a point does, and its quadrupole.
struct moments {
  double mass = 0;
  vec center;                          ///< Of mass.
  std::array<double, 6> quadrupole{};  ///< xx, yy, zz, xy, xz, yz; about the centre.

  /// A part of this mass at `apart` from the centre.
  void add_quadrupole(double part_mass, const vec& apart) {
    const double r2 = dot(apart, apart);
    quadrupole[0] += part_mass * (3 * apart.x * apart.x - r2);
    quadrupole[1] += part_mass * (3 * apart.y * apart.y - r2);
    quadrupole[2] += part_mass * (3 * apart.z * apart.z - r2);
    quadrupole[3] += part_mass * 3 * apart.x * apart.y;
    quadrupole[4] += part_mass * 3 * apart.x * apart.z;
    quadrupole[5] += part_mass * 3 * apart.y * apart.z;
  }
};

/// The square of the distance from the centre of mass from which on a cell need not be opened. It
/// is out of reach of the cell's own particles.
inline double opening_distance2(const input& in, double half, const vec& middle,
                                const vec& center) {
  const vec off = center - middle;
  const double distance = 2 * half / in.opening + std::sqrt(dot(off, off));
  return distance * distance;
}

struct field {
  vec acceleration;
  double potential = 0;
};

/// Adds the field of a mass, which is `apart` from where the field is.
inline void add_point(field& f, double softening, double mass, const vec& apart) {
  const double per_r2 = 1 / (dot(apart, apart) + softening * softening);
  const double potential = mass * std::sqrt(per_r2);
  f.potential -= potential;
  f.acceleration += potential * per_r2 * apart;
}

inline void add_cell(field& f, double softening, const moments& m, const vec& apart) {
  add_point(f, softening, m.mass, apart);
  const auto& q = m.quadrupole;
  const vec turned{q[0] * apart.x + q[3] * apart.y + q[4] * apart.z,
                   q[3] * apart.x + q[1] * apart.y + q[5] * apart.z,
                   q[4] * apart.x + q[5] * apart.y + q[2] * apart.z};
  const double per_r2 = 1 / (dot(apart, apart) + softening * softening);
  const double per_r5 = per_r2 * per_r2 * std::sqrt(per_r2);
  const double potential = 0.5 * dot(apart, turned) * per_r5;
  f.potential -= potential;
  f.acceleration += 5 * potential * per_r2 * apart;
  f.acceleration -= per_r5 * turned;
}

struct results {
  std::vector<particle> particles;  ///< By number; after the last step.
  double energy_before = 0;
  double energy_after = 0;
};

class program : public application {
 public:
  explicit program(const input& in) : in_(in) {}

  /// The results, from shared memory.
  virtual results gather() const = 0;

  std::string check() const final;
  double checksum() const final;

 protected:
  const input in_;
};

/// The whole simulation on one thread, with a tree of its own kind.
results simulate_alone(const input& in);
/// Empty, or in a sentence where `found` differs from what was `wanted` by more than rounding.
std::string difference(const results& found, const results& wanted);
/// Empty, or in a sentence which of some accelerations is further from that by all other particles
/// than comes of taking cells as a whole.
std::string direct_difference(const input& in, const results& found);

std::unique_ptr<program> make_barnes(const input& in);

}  // namespace apps::nine::barnes
