// SPDX-License-Identifier: Apache-2.0
// The physics of the three water programs, which differ only in who computes what and where it
// lies. Molecules are those of SPC/Fw: three charged atoms, harmonic bonds and angle, and a
// Lennard-Jones potential between oxygens. They move in a cube that repeats itself in all
// directions, by velocity Verlet. What acts between two molecules fades out between 0.9 times the
// cutoff and the cutoff, as a function of the distance of the oxygens: so nothing jumps, and a
// program that knows where the oxygens are knows which pairs there are.
// Source: Wu, Tepper and Voth, Flexible simple point-charge water model (2006).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "nine/kernel/vector.hpp"

namespace apps::nine::water {

constexpr double spacing = 3.104;  ///< Å, between molecules on a lattice as dense as the liquid.

struct input {
  std::size_t per_side;  ///< Molecules along a side of the lattice that they start from; even.
  double cutoff;         ///< Å, half the side at most.
  std::size_t steps;
  double step_fs = 0.5;

  std::size_t molecules() const { return per_side * per_side * per_side; }
  double side() const { return spacing * static_cast<double>(per_side); }  ///< Of the cube, in Å.
};

/// A vector for each atom, oxygen first: positions in Å, velocities in Å/fs, or forces in
/// kcal/mol/Å.
struct sites {
  std::array<vec, 3> at;

  sites& operator+=(const sites& other) {
    for (std::size_t atom = 0; atom < 3; ++atom) at[atom] += other.at[atom];
    return *this;
  }
};

/// In kcal/mol, of all molecules or some of them.
struct energies {
  double intra = 0;  ///< Bonds and angles.
  double inter = 0;  ///< Between molecules.
  double kinetic = 0;

  double total() const { return intra + inter + kinetic; }
  energies& operator+=(const energies& other) {
    intra += other.intra;
    inter += other.inter;
    kinetic += other.kinetic;
    return *this;
  }
};

// Å, kcal/mol, elementary charges, atomic units of mass, radians.
constexpr double bond_length = 1.012;
constexpr double bond_strength = 1059.162;
constexpr double angle_rest = 113.24 * 3.14159265358979323846 / 180;
constexpr double angle_strength = 75.90;
constexpr double sigma = 3.165492;
constexpr double epsilon = 0.1554253;
constexpr double coulomb = 332.06371;
constexpr std::array<double, 3> charge{-0.82, 0.41, 0.41};
constexpr std::array<double, 3> mass{15.9994, 1.00794, 1.00794};
constexpr double acceleration = 4.184e-4;  ///< Of kcal/mol/Å/u, in Å/fs².

/// Where a molecule starts: on a lattice, x first; neighbours look in opposite directions.
sites first_position(const input& in, std::size_t molecule);
/// Molecule 2k is given a random velocity, and molecule 2k+1 its opposite: the sum of all momenta
/// is zero.
sites first_velocity(std::size_t molecule);

/// What acts between two molecules.
class interaction {
 public:
  explicit interaction(const input& in)
      : side_(in.side()),
        per_side_(1 / side_),
        cutoff2_(in.cutoff * in.cutoff),
        inner2_(0.81 * cutoff2_),
        per_width3_(1 / std::pow(cutoff2_ - inner2_, 3)) {}

  /// Adds the forces between two molecules to both, and returns their energy. The oxygens must lie
  /// in the cube. Out of reach the forces are left alone.
  double operator()(const sites& p, const sites& q, sites& force_p, sites& force_q) const {
    const vec apart = p.at[0] - q.at[0];
    // To the image of q that is nearest to p.
    const vec image = side_ * vec{rounded(apart.x * per_side_), rounded(apart.y * per_side_),
                                  rounded(apart.z * per_side_)};
    const vec oxygens = apart - image;
    const double r2 = dot(oxygens, oxygens);
    if (r2 >= cutoff2_) return 0;
    return act(p, q, image, oxygens, r2, force_p, force_q);
  }

 private:
  /// To the nearest integer, without a call; |x| must be small.
  static double rounded(double x) {
    constexpr double big = 6755399441055744.0;  // 1.5 × 2^52: sums with it have no fraction
    return (x + big) - big;
  }

  double act(const sites& p, const sites& q, const vec& image, const vec& oxygens, double r2,
             sites& force_p, sites& force_q) const {
    double shown = 1;        // the share of the potential that is in force at this distance
    double slope_by_r2 = 0;  // of that share
    if (r2 > inner2_) {
      const double left = cutoff2_ - r2;
      shown = left * left * (cutoff2_ + 2 * r2 - 3 * inner2_) * per_width3_;
      slope_by_r2 = 6 * left * (inner2_ - r2) * per_width3_;
    }
    double energy = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        const vec d = p.at[i] - q.at[j] - image;
        const double per_r2 = 1 / dot(d, d);
        const double charges = coulomb * charge[i] * charge[j] * std::sqrt(per_r2);
        energy += charges;
        double push = charges * per_r2;
        if (i == 0 && j == 0) {
          const double s2 = sigma * sigma * per_r2;
          const double s6 = s2 * s2 * s2;
          energy += 4 * epsilon * (s6 * s6 - s6);
          push += 24 * epsilon * (2 * s6 * s6 - s6) * per_r2;
        }
        const vec force = shown * push * d;
        force_p.at[i] += force;
        force_q.at[j] -= force;
      }
    }
    const vec fading = -2 * energy * slope_by_r2 * oxygens;
    force_p.at[0] += fading;
    force_q.at[0] -= fading;
    return shown * energy;
  }

  double side_;
  double per_side_;
  double cutoff2_;
  double inner2_;
  double per_width3_;
};

/// Adds the forces of bonds and angle of one molecule, and returns their energy.
inline double act_inside(const sites& p, sites& force) {
  double energy = 0;
  std::array<vec, 2> arm;
  std::array<double, 2> length{};
  for (std::size_t i = 0; i < 2; ++i) {
    arm[i] = p.at[i + 1] - p.at[0];
    length[i] = std::sqrt(dot(arm[i], arm[i]));
    const double stretch = length[i] - bond_length;
    energy += 0.5 * bond_strength * stretch * stretch;
    const vec pull = bond_strength * stretch / length[i] * arm[i];
    force.at[0] += pull;
    force.at[i + 1] -= pull;
  }
  const double cosine = std::clamp(dot(arm[0], arm[1]) / (length[0] * length[1]), -1.0, 1.0);
  const double bend = std::acos(cosine) - angle_rest;
  energy += 0.5 * angle_strength * bend * bend;
  // The derivative of the angle by the end of an arm, times what drives it back. A molecule that
  // is all but straight is not pushed without bounds.
  const double drive = angle_strength * bend / std::max(std::sqrt(1 - cosine * cosine), 1e-9);
  for (std::size_t i = 0; i < 2; ++i) {
    const vec turn = drive / (length[0] * length[1]) * arm[1 - i] -
                     drive * cosine / (length[i] * length[i]) * arm[i];
    force.at[i + 1] += turn;
    force.at[0] -= turn;
  }
  return energy;
}

/// What the forces add to the velocities in `fs`.
inline void kick(sites& velocity, const sites& force, double fs) {
  for (std::size_t i = 0; i < 3; ++i) {
    velocity.at[i] += fs * acceleration / mass[i] * force.at[i];
  }
}

/// Where the molecule is after `fs`. If its oxygen leaves the cube it comes in on the other side.
inline void drift(const input& in, sites& position, const sites& velocity, double fs) {
  for (std::size_t i = 0; i < 3; ++i) position.at[i] += fs * velocity.at[i];
  const double side = in.side();
  const vec oxygen = position.at[0];
  const vec out = side * vec{std::floor(oxygen.x / side), std::floor(oxygen.y / side),
                             std::floor(oxygen.z / side)};
  for (vec& atom : position.at) atom -= out;
}

inline double kinetic_energy(const sites& velocity) {
  double energy = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    energy += 0.5 * mass[i] / acceleration * dot(velocity.at[i], velocity.at[i]);
  }
  return energy;
}

}  // namespace apps::nine::water
