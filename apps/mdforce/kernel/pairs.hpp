// SPDX-License-Identifier: Apache-2.0
// Nonbonded forces, as in codes for proteins: Lennard-Jones and Coulomb between all pairs of atoms
// that are no further apart than the cutoff, but those next to each other in the chain.
// Sources: Brooks et al., CHARMM (1983), for the shift that ends Coulomb forces at the cutoff;
// parameters of the order of AMBER's (Cornell et al., 1995).
#pragma once

#include "mdforce/kernel/atoms.hpp"

namespace apps::mdforce {

/// What does not move, so every rank knows it of every atom.
struct parameters {
  double charge;        ///< In units of the electron's.
  double half_sigma;    ///< In Å.
  double root_epsilon;  ///< Of kcal/mol.
};
/// The chain repeats eight atoms, neutral together: nitrogen, carbon, carbon, oxygen of the
/// backbone, and four carbons beside it.
inline constexpr std::array<parameters, 8> residue{{{-0.40, 1.625, 0.4123},
                                                    {0.10, 1.700, 0.3308},
                                                    {0.55, 1.700, 0.2933},
                                                    {-0.50, 1.480, 0.4583},
                                                    {0.05, 1.700, 0.3308},
                                                    {0.10, 1.700, 0.3308},
                                                    {-0.05, 1.700, 0.3308},
                                                    {0.15, 1.700, 0.3308}}};
inline const parameters& parameters_of(std::uint32_t atom) { return residue[atom % 8]; }

/// The force of one atom on another, for a cutoff.
class interaction {
 public:
  explicit interaction(double cutoff) : per_cutoff2_(1 / (cutoff * cutoff)) {}

  /// Of atom j at q on atom i at p; j has the opposite. Requires: within the cutoff.
  vec operator()(std::uint32_t i, const vec& p, std::uint32_t j, const vec& q) const {
    const parameters& a = parameters_of(i);
    const parameters& b = parameters_of(j);
    const vec d = p - q;
    const double per_r2 = 1 / square(d);
    const double per_r = std::sqrt(per_r2);
    const double sigma = a.half_sigma + b.half_sigma;
    const double s2 = sigma * sigma * per_r2;
    const double s6 = s2 * s2 * s2;
    const double lennard_jones = 24 * a.root_epsilon * b.root_epsilon * (2 * s6 - 1) * s6;
    // The energy is qq/r · (1 - r²/c²)².
    const double x = per_cutoff2_ / per_r2;
    const double shifted = coulomb * a.charge * b.charge * per_r * (1 + 2 * x - 3 * x * x);
    return (lennard_jones + shifted) * per_r2 * d;
  }

 private:
  static constexpr double coulomb = 332.0637;  // kcal·Å/mol
  double per_cutoff2_;
};

/// Atoms that others of the chain lie between: one or two bonds apart there are no such forces.
inline bool bonded(std::uint32_t i, std::uint32_t j) { return (i < j ? j - i : i - j) <= 2; }

/// Which of two atoms has the pair in its list: the first one of every other pair, so that those
/// that have many atoms after them have no more pairs than others.
inline bool is_first(std::uint32_t i, std::uint32_t j) { return (i < j) == ((i + j) % 2 == 0); }

/// For each of some atoms, the others that it has pairs with.
struct pair_list {
  std::vector<std::uint32_t> begin;  ///< Of each one's partners; one more at the end.
  std::vector<std::uint32_t> partners;

  std::size_t size() const { return partners.size(); }
  std::span<const std::uint32_t> of(std::size_t index) const {
    return std::span(partners).subspan(begin[index], begin[index + 1] - begin[index]);
  }
};
/// Of `atoms`, which lie at `positions`, with all others. Found by cubes.
pair_list find_pairs(std::span<const vec> positions, std::span<const std::uint32_t> atoms,
                     double cutoff);

/// What one loop computes.
struct reference {
  std::vector<vec> forces;    ///< On each atom.
  std::vector<double> gross;  ///< Sum of the lengths of what acts on each atom.
  double seconds = 0;         ///< That the loop over all pairs took, without `gross`.
};
reference compute_alone(const settings& s, std::span<const vec> positions);

/// Empty, or what is wrong with the forces that were found on `atoms`, in a sentence.
std::string difference(std::span<const std::uint32_t> atoms, std::span<const vec> found,
                       const reference& wanted);
/// The same with the sum of all forces there are: by Newton's third law it is none.
std::string imbalance(const vec& sum, const reference& wanted);

}  // namespace apps::mdforce
