// SPDX-License-Identifier: Apache-2.0
// Atoms of a molecule like a protein, and which rank has which: a compact chain that is the same in
// every run and on every rank, dealt out at random or by orthogonal recursive bisection.
// Sources: Plevyak, Karamcheti, Zhang and Chien, Hybrid Execution, §4.3.2; Berger and Bokhari, A
// partitioning strategy for nonuniform problems on multiprocessors (1987).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace apps::mdforce {

struct settings {
  std::uint32_t atoms = 10503;
  double cutoff = 8;  ///< In Å.
  std::uint32_t steps = 1;
  std::uint64_t seed = 1;
  std::string layout = "orb";
};

/// A position in Å, or a force in kcal/mol/Å.
struct vec {
  std::array<double, 3> at{};

  double& operator[](std::size_t x) { return at[x]; }
  double operator[](std::size_t x) const { return at[x]; }
  vec& operator+=(const vec& b) {
    for (std::size_t x = 0; x < 3; ++x) at[x] += b[x];
    return *this;
  }
  vec& operator-=(const vec& b) {
    for (std::size_t x = 0; x < 3; ++x) at[x] -= b[x];
    return *this;
  }
  friend vec operator+(vec a, const vec& b) { return a += b; }
  friend vec operator-(vec a, const vec& b) { return a -= b; }
  friend vec operator*(double f, vec a) {
    for (double& c : a.at) c *= f;
    return a;
  }
  friend bool operator==(const vec&, const vec&) = default;
};
inline double square(const vec& a) { return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]; }
inline double length(const vec& a) { return std::sqrt(square(a)); }

inline constexpr double bond = 1.5;       ///< Between neighbours in the chain, in Å.
inline constexpr double clearance = 2.3;  ///< Between all others, at least.

/// Where the atoms are: a random walk that avoids itself, and stays about as dense as a protein is
/// (a heavy atom in 18 Å³).
std::vector<vec> make_chain(const settings& s);

/// Which rank has which atom; each has as many, give or take one.
struct layout {
  std::vector<int> owner;                         ///< Of each atom.
  std::vector<std::uint32_t> place;               ///< Of each atom, among its owner's.
  std::vector<std::vector<std::uint32_t>> atoms;  ///< Of each rank, in their order in the chain.
};
/// Each atom on a rank that says nothing of where it is.
layout deal_at_random(std::size_t atoms, int ranks, std::uint64_t seed);
/// Cuts the ranks in two halves, and the atoms across their longest side in the same ratio, until
/// each part is a rank's: atoms that are near each other are mostly together.
layout bisect(std::span<const vec> positions, int ranks);

layout make_layout(const settings& s, std::span<const vec> positions, int ranks);

/// Cubes that keep together what is near.
class grid {
 public:
  /// For positions in the box from `low` to `high`; `side`: of a cube, at least.
  grid(const vec& low, const vec& high, double side);

  /// Atoms are numbered in the order in which they are added.
  void add(const vec& position);
  /// Takes back the one that was added last.
  void remove_last();

  /// Calls visit(atom) for each that may be `side` from there or nearer, and some others.
  template <class Visit>
  void near(const vec& position, Visit visit) const {
    const auto middle = cube_at(position);
    std::array<std::array<std::size_t, 2>, 3> range;
    for (std::size_t x = 0; x < 3; ++x) {
      range[x] = {middle[x] == 0 ? 0 : middle[x] - 1, std::min(middle[x] + 2, count_[x])};
    }
    for (std::size_t a = range[0][0]; a < range[0][1]; ++a) {
      for (std::size_t b = range[1][0]; b < range[1][1]; ++b) {
        for (std::size_t c = range[2][0]; c < range[2][1]; ++c) {
          for (std::uint32_t i = last_[index({a, b, c})]; i != none; i = before_[i]) visit(i);
        }
      }
    }
  }

 private:
  using cube = std::array<std::size_t, 3>;
  static constexpr std::uint32_t none = ~0u;

  cube cube_at(const vec& position) const;
  std::size_t index(const cube& c) const { return (c[0] * count_[1] + c[1]) * count_[2] + c[2]; }

  vec low_;
  std::array<double, 3> per_cube_;
  cube count_;
  std::vector<std::uint32_t> last_;    // in each cube
  std::vector<std::uint32_t> before_;  // each atom, in its cube
  std::vector<std::size_t> cube_of_;
};

}  // namespace apps::mdforce
