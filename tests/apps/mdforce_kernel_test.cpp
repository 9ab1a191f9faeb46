// SPDX-License-Identifier: Apache-2.0
// The chain is what it says, each atom has one rank, each pair is found once, and the check notices
// what is wrong with forces.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "mdforce/kernel/pairs.hpp"

namespace {

using namespace apps::mdforce;

using pair_set = std::set<std::pair<std::uint32_t, std::uint32_t>>;

std::vector<std::uint32_t> first_atoms(std::uint32_t count) {
  std::vector<std::uint32_t> atoms(count);
  std::iota(atoms.begin(), atoms.end(), 0u);
  return atoms;
}

TEST(mdforce, the_chain_is_the_same_for_the_same_seed_only) {
  const settings s{.atoms = 300};
  EXPECT_EQ(make_chain(s), make_chain(s));
  EXPECT_NE(make_chain(s), make_chain({.atoms = 300, .seed = 2}));
}

TEST(mdforce, the_chain_keeps_its_bonds_avoids_itself_and_is_as_dense_as_a_protein) {
  const settings s{.atoms = 2000};
  const auto chain = make_chain(s);
  ASSERT_EQ(chain.size(), s.atoms);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    for (std::size_t j = i + 1; j < chain.size(); ++j) {
      const double distance = length(chain[i] - chain[j]);
      if (j == i + 1) {
        EXPECT_NEAR(distance, bond, 1e-12);
      } else {
        EXPECT_GE(distance, clearance);
      }
    }
  }
  const auto inside = std::ranges::count_if(chain, [](const vec& p) { return length(p) < 15; });
  const double volume = 4.0 / 3 * 3.14159 * 15 * 15 * 15 / static_cast<double>(inside);
  EXPECT_NEAR(volume, 18, 3);  // Å³ for an atom
}

TEST(mdforce, each_atom_is_of_one_rank_and_ranks_differ_by_one_atom_at_most) {
  const auto chain = make_chain({.atoms = 401});
  for (int ranks = 1; ranks <= 13; ++ranks) {
    for (const char* name : {"random", "orb"}) {
      settings s{.atoms = 401};
      s.layout = name;
      const layout l = make_layout(s, chain, ranks);
      ASSERT_EQ(l.atoms.size(), static_cast<std::size_t>(ranks));
      std::size_t all = 0;
      for (int r = 0; r < ranks; ++r) {
        const auto& atoms = l.atoms[static_cast<std::size_t>(r)];
        all += atoms.size();
        EXPECT_LE(atoms.size() - 401u / static_cast<unsigned>(ranks), 1u);
        for (std::size_t place = 0; place < atoms.size(); ++place) {
          EXPECT_EQ(l.owner[atoms[place]], r);
          EXPECT_EQ(l.place[atoms[place]], place);
        }
      }
      EXPECT_EQ(all, 401u);
    }
  }
}

TEST(mdforce, bisection_puts_a_plane_between_any_two_ranks) {
  const auto chain = make_chain({.atoms = 500});
  for (const int ranks : {2, 3, 5, 8}) {
    const layout l = bisect(chain, ranks);
    for (std::size_t a = 0; a < l.atoms.size(); ++a) {
      for (std::size_t b = a + 1; b < l.atoms.size(); ++b) {
        const bool apart = std::ranges::any_of(std::array{0u, 1u, 2u}, [&](unsigned x) {
          const auto at = [&](std::uint32_t i) { return chain[i][x]; };
          const auto [low_a, high_a] = std::ranges::minmax(l.atoms[a], {}, at);
          const auto [low_b, high_b] = std::ranges::minmax(l.atoms[b], {}, at);
          return at(high_a) <= at(low_b) || at(high_b) <= at(low_a);
        });
        EXPECT_TRUE(apart) << a << " and " << b << " of " << ranks;
      }
    }
  }
}

TEST(mdforce, bisection_keeps_more_pairs_on_one_rank_than_chance) {
  const settings s{.atoms = 2000};
  const auto chain = make_chain(s);
  const auto share_of_one_rank = [&](const layout& l) {
    std::size_t together = 0;
    const auto pairs = find_pairs(chain, first_atoms(s.atoms), s.cutoff);
    for (std::uint32_t i = 0; i < s.atoms; ++i) {
      for (const std::uint32_t j : pairs.of(i)) together += l.owner[i] == l.owner[j];
    }
    return static_cast<double>(together) / static_cast<double>(pairs.size());
  };
  EXPECT_NEAR(share_of_one_rank(deal_at_random(s.atoms, 4, 1)), 0.25, 0.02);
  EXPECT_GT(share_of_one_rank(bisect(chain, 4)), 0.6);
}

TEST(mdforce, pairs_found_by_cubes_are_all_there_are_each_once) {
  const auto chain = make_chain({.atoms = 300});
  for (const double cutoff : {1.0, 3.0, 8.0, 30.0}) {
    pair_set wanted;
    for (std::uint32_t i = 0; i < 300; ++i) {
      for (std::uint32_t j = i + 3; j < 300; ++j) {
        if (length(chain[i] - chain[j]) <= cutoff) wanted.emplace(i, j);
      }
    }
    pair_set found;
    std::size_t number = 0;
    const layout l = bisect(chain, 3);
    for (const auto& atoms : l.atoms) {
      const pair_list pairs = find_pairs(chain, atoms, cutoff);
      for (std::size_t k = 0; k < atoms.size(); ++k) {
        for (const std::uint32_t j : pairs.of(k)) found.insert(std::minmax(atoms[k], j));
      }
      number += pairs.size();
    }
    EXPECT_EQ(found, wanted) << cutoff;
    EXPECT_EQ(number, wanted.size()) << cutoff;
  }
}

TEST(mdforce, forces_are_the_slope_of_the_energy_and_end_at_the_cutoff) {
  const double cutoff = 8;
  const interaction force(cutoff);
  const auto energy = [&](std::uint32_t i, std::uint32_t j, double r) {
    const parameters& a = parameters_of(i);
    const parameters& b = parameters_of(j);
    const double s6 = std::pow((a.half_sigma + b.half_sigma) / r, 6);
    const double shift = 1 - r * r / (cutoff * cutoff);
    return 4 * a.root_epsilon * b.root_epsilon * (s6 * s6 - s6) +
           332.0637 * a.charge * b.charge / r * shift * shift;
  };
  const vec direction{{2.0 / 7, 3.0 / 7, -6.0 / 7}};
  constexpr double h = 1e-6;
  for (const auto& [i, j] : {std::pair{0u, 3u}, {2u, 11u}, {5u, 9u}}) {
    for (const double r : {2.5, 3.6, 5.0, 7.9}) {
      const vec f = force(i, r * direction, j, {});
      const double slope = (energy(i, j, r + h) - energy(i, j, r - h)) / (2 * h);
      for (std::size_t x = 0; x < 3; ++x) EXPECT_NEAR(f[x], -slope * direction[x], 1e-6);
    }
    EXPECT_LT(length(force(i, cutoff * direction, j, {})), 0.01);
  }
}

TEST(mdforce, each_force_has_its_opposite) {
  const settings s{.atoms = 500};
  const reference all = compute_alone(s, make_chain(s));
  vec sum;
  for (const vec& f : all.forces) sum += f;
  EXPECT_EQ(imbalance(sum, all), "");
  EXPECT_GT(*std::ranges::max_element(all.gross), 1);
  sum[1] += 1e-3;
  EXPECT_NE(imbalance(sum, all), "");
}

TEST(mdforce, a_single_pair_that_is_missing_or_there_twice_is_noticed) {
  const settings s{.atoms = 300};
  const auto chain = make_chain(s);
  const reference wanted = compute_alone(s, chain);
  const auto atoms = first_atoms(s.atoms);
  EXPECT_EQ(difference(atoms, wanted.forces, wanted), "");
  const pair_list pairs = find_pairs(chain, atoms, s.cutoff);
  const interaction force(s.cutoff);
  for (const std::uint32_t i : atoms) {
    for (const std::uint32_t j : pairs.of(i)) {
      const vec f = force(i, chain[i], j, chain[j]);
      auto without = wanted.forces;
      without[i] -= f;
      EXPECT_NE(difference(atoms, without, wanted), "") << i << " with " << j;
    }
  }
  auto nowhere = wanted.forces;
  nowhere[7][2] = std::nan("");
  EXPECT_NE(difference(atoms, nowhere, wanted), "");
}

}  // namespace
