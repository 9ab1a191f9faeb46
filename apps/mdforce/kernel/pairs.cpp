// SPDX-License-Identifier: Apache-2.0
#include "mdforce/kernel/pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "common/cpu_clock.hpp"

namespace apps::mdforce {
namespace {

/// A sum of n forces is off by n·2⁻⁵³ of the sum of their lengths at most, whatever their order:
/// 10⁻¹³ with a thousand. A pair that is missing, or there twice, changes far more: even at the
/// cutoff Lennard-Jones forces are some 10⁻⁶ of what acts on an atom.
constexpr double tolerance = 1e-12;

std::string to_text(const vec& force) {
  return fmt::format("({}, {}, {}) kcal/mol/Å", force[0], force[1], force[2]);
}

}  // namespace

pair_list find_pairs(std::span<const vec> positions, std::span<const std::uint32_t> atoms,
                     double cutoff) {
  vec low = positions.front();
  vec high = low;
  for (const vec& p : positions) {
    for (std::size_t x = 0; x < 3; ++x) {
      low[x] = std::min(low[x], p[x]);
      high[x] = std::max(high[x], p[x]);
    }
  }
  grid cubes(low, high, cutoff);
  for (const vec& p : positions) cubes.add(p);

  pair_list pairs;
  for (const std::uint32_t i : atoms) {
    pairs.begin.push_back(static_cast<std::uint32_t>(pairs.partners.size()));
    cubes.near(positions[i], [&](std::uint32_t j) {
      if (!bonded(i, j) && is_first(i, j) &&
          square(positions[i] - positions[j]) <= cutoff * cutoff) {
        pairs.partners.push_back(j);
      }
    });
    std::sort(pairs.partners.begin() + pairs.begin.back(), pairs.partners.end());
  }
  pairs.begin.push_back(static_cast<std::uint32_t>(pairs.partners.size()));
  return pairs;
}

reference compute_alone(const settings& s, std::span<const vec> positions) {
  std::vector<std::uint32_t> atoms(positions.size());
  std::iota(atoms.begin(), atoms.end(), 0u);
  const pair_list pairs = find_pairs(positions, atoms, s.cutoff);
  const interaction force(s.cutoff);
  reference all;
  all.forces.resize(atoms.size());
  all.gross.resize(atoms.size());
  const double start = cpu_seconds_now();
  for (const std::uint32_t i : atoms) {
    for (const std::uint32_t j : pairs.of(i)) {
      const vec f = force(i, positions[i], j, positions[j]);
      all.forces[i] += f;
      all.forces[j] -= f;
    }
  }
  all.seconds = cpu_seconds_now() - start;
  for (const std::uint32_t i : atoms) {
    for (const std::uint32_t j : pairs.of(i)) {
      const double f = length(force(i, positions[i], j, positions[j]));
      all.gross[i] += f;
      all.gross[j] += f;
    }
  }
  return all;
}

std::string difference(std::span<const std::uint32_t> atoms, std::span<const vec> found,
                       const reference& wanted) {
  for (std::size_t k = 0; k < atoms.size(); ++k) {
    const std::uint32_t i = atoms[k];
    const double off = length(found[k] - wanted.forces[i]);
    // Not "off > …", which NaN is not.
    if (!(off <= tolerance * wanted.gross[i])) {
      return fmt::format("the force on atom {} is {} instead of {}", i, to_text(found[k]),
                         to_text(wanted.forces[i]));
    }
  }
  return {};
}

std::string imbalance(const vec& sum, const reference& wanted) {
  const double gross = std::accumulate(wanted.gross.begin(), wanted.gross.end(), 0.0);
  if (length(sum) <= tolerance * gross) return {};
  return fmt::format("all forces together are {} and not 0", to_text(sum));
}

}  // namespace apps::mdforce
