// SPDX-License-Identifier: Apache-2.0
// Liquid water by molecular dynamics, of the structure of SPLASH's Water: a predictor-corrector
// integrates the motion of the atoms, from forces inside each molecule and between all pairs of
// molecules, O(n²), each pair once. The molecules are those of the model SPC/Fw: three charged
// atoms, harmonic bonds and angle, and a Lennard-Jones potential between oxygens. Coulomb forces
// end at half the box, by a reaction field, so that nothing jumps when a pair comes or goes.
// Sources: Singh, Weber and Gupta, SPLASH (1992); MRPC §5.3; Wu, Tepper and Voth, Flexible simple
// point-charge water model (2006); Gear (1971), order 6.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace apps::water {

struct settings {
  std::uint32_t molecules = 512;
  std::uint32_t steps = 20;
  std::uint32_t warm_up = 2;  ///< Further steps before those, which are not measured.
  double step_fs = 0.25;
  double kelvin = 300;
  std::uint32_t seed = 1;
  std::string variant = "atomic";

  std::uint32_t all_steps() const { return warm_up + steps; }
};

/// A vector for each atom, oxygen first: positions in Å, or forces in kcal/mol/Å.
struct sites {
  std::array<std::array<double, 3>, 3> at{};

  sites& operator+=(const sites& other) {
    for (std::size_t atom = 0; atom < 3; ++atom) {
      for (std::size_t x = 0; x < 3; ++x) at[atom][x] += other.at[atom][x];
    }
    return *this;
  }
};

/// In kcal/mol, of the whole system or a part of it.
struct energies {
  double intra = 0;  ///< Bonds and angles.
  double inter = 0;  ///< Between molecules.
  double kinetic = 0;

  double total() const { return intra + inter + kinetic; }
  friend energies operator+(const energies& a, const energies& b) {
    return {a.intra + b.intra, a.inter + b.inter, a.kinetic + b.kinetic};
  }
};

/// The cube that repeats itself in all directions.
struct box {
  explicit box(const settings& s);
  double side;
  double per_side;
  double cutoff2;       ///< Atoms further apart do not act on each other …
  double skip2;         ///< … nor any of two molecules whose oxygens are.
  double field;         ///< Of the reaction field: the force ends with it at the cutoff,
  double field_offset;  ///< and the potential with this.
};

/// Molecules of a rank: each has as many, give or take one.
std::uint32_t first_at(const settings& s, int ranks, int rank);
inline std::uint32_t count_at(const settings& s, int ranks, int rank) {
  return first_at(s, ranks, rank + 1) - first_at(s, ranks, rank);
}
int owner_of(const settings& s, int ranks, std::uint32_t molecule);

/// Who computes a pair: the molecules i+1 … i+partners(i), around the end, are i's.
inline std::uint32_t partners(const settings& s, std::uint32_t i) {
  const std::uint32_t n = s.molecules;
  return (n - 1) / 2 + (n % 2 == 0 && i < n / 2 ? 1 : 0);
}

/// Adds the forces between two molecules to both, and returns their energy. Out of reach they are
/// left alone; then `*in_reach` is false.
double interact(const box& b, const sites& p, const sites& q, sites& force_p, sites& force_q,
                bool* in_reach);

/// Motion of the molecules that a rank has.
class motion {
 public:
  motion(const settings& s, std::uint32_t first, std::uint32_t count);

  /// One step ahead: writes where all molecules are, and what acts inside them.
  /// Returns the energy of that.
  double predict(std::span<sites> positions, std::span<sites> forces);
  /// Makes good what the forces say. Returns the kinetic energy.
  double correct(std::span<const sites> forces);

 private:
  static constexpr std::size_t orders = 7;  // the position and six derivatives
  /// Derivative k times step^k / k!.
  using atom = std::array<std::array<double, 3>, orders>;

  double step_;
  double side_;
  std::vector<std::array<atom, 3>> molecules_;
};

/// Molecules that a rank reads and acts on: its own, and after them those of other ranks that its
/// pairs need, by owner.
struct neighbourhood {
  neighbourhood(const settings& s, int ranks, int rank);

  std::uint32_t first = 0;
  std::uint32_t own = 0;
  std::vector<std::uint32_t> slot_of;              ///< Of each molecule; none where not needed.
  std::vector<std::vector<std::uint32_t>> wanted;  ///< Of each rank: its places, in order.
  std::vector<std::uint32_t> first_slot;           ///< Of each rank's; one more at the end.
  std::vector<std::vector<std::uint32_t>> given;   ///< To each rank: my places that it wants.
  std::vector<std::uint32_t> given_slot;           ///< Where they begin there.

  static constexpr std::uint32_t none = ~0u;
  std::uint32_t slots() const { return first_slot.back(); }
};

/// Whose pairs are computed: those of own molecules, or those with molecules of others.
enum class with { own, others };
/// Pairs of molecules that lie in `positions`, by slot; adds to `forces`. Returns their energy.
double add_pairs(const settings& s, const box& b, const neighbourhood& n, with which,
                 std::span<const sites> positions, std::span<sites> forces);

/// What one loop computes.
struct reference {
  energies last;                 ///< After the last step.
  energies first;                ///< After the warm-up.
  std::vector<sites> positions;  ///< Of a rank's molecules, in the last step.
  double seconds = 0;            ///< That the rank's part of the measured steps took.
};
reference compute_alone(const settings& s, int ranks, int rank);

/// Empty, or what is wrong with what was found, in a sentence.
std::string difference(const settings& s, const energies& found, std::span<const sites> positions,
                       const reference& wanted);

}  // namespace apps::water
