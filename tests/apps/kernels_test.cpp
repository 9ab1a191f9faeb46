// SPDX-License-Identifier: Apache-2.0
// What the kernels of the applications compute, and that their checks notice what is wrong: all
// forms are compared with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "common/time_split.hpp"
#include "em3d/kernel/graph.hpp"
#include "gups/kernel/updates.hpp"
#include "water/kernel/molecules.hpp"

namespace {

namespace em3d = apps::em3d;
namespace gups = apps::gups;
namespace water = apps::water;

TEST(em3d, ghosts_come_in_the_order_in_which_they_are_expected) {
  const em3d::settings s{.nodes = 90, .degree = 4, .remote = 70};
  constexpr int ranks = 3;
  for (const em3d::kind k : {em3d::e, em3d::h}) {
    std::vector<em3d::exchange> all;
    for (int r = 0; r < ranks; ++r) all.push_back(em3d::make_exchange(s, ranks, r, k));
    for (std::size_t from = 0; from < ranks; ++from) {
      for (std::size_t to = 0; to < ranks; ++to) {
        EXPECT_EQ(all[from].given[to], all[to].wanted[from]);
        if (from != to) {
          EXPECT_EQ(all[from].given_at[to], all[to].first_ghost[from]);
        }
      }
    }
  }
}

TEST(em3d, each_edge_finds_its_neighbour_here_or_among_the_ghosts) {
  const em3d::settings s{.nodes = 90, .degree = 4, .remote = 70};
  constexpr int ranks = 3;
  const em3d::part p = em3d::make_part(s, ranks, 1, em3d::h);
  const em3d::exchange x = em3d::make_exchange(s, ranks, 1, em3d::e);
  const std::uint32_t own = em3d::count_at(s, ranks, 1);
  ASSERT_EQ(p.neighbours.size(), x.sources.size());
  for (std::size_t edge = 0; edge < x.sources.size(); ++edge) {
    const em3d::place wanted = p.neighbours[edge];
    if (wanted.rank == 1) {
      EXPECT_EQ(x.sources[edge], wanted.index);
    } else {
      const auto ghost = x.sources[edge] - own - x.first_ghost[wanted.rank];
      EXPECT_EQ(x.wanted[wanted.rank].at(ghost), wanted.index);
    }
  }
}

TEST(em3d, as_many_edges_are_remote_as_asked_for) {
  for (const std::uint32_t percent : {0u, 10u, 40u, 100u}) {
    const em3d::settings s{.nodes = 4000, .degree = 20, .remote = percent};
    const em3d::part p = em3d::make_part(s, 4, 2, em3d::e);
    const auto remote = std::ranges::count_if(p.neighbours, [](auto n) { return n.rank != 2; });
    EXPECT_NEAR(static_cast<double>(remote) / static_cast<double>(p.neighbours.size()),
                percent / 100.0, percent % 100 == 0 ? 0 : 0.02);
  }
}

TEST(em3d, a_single_value_that_was_one_step_old_once_is_noticed_at_the_end) {
  const em3d::settings s{.nodes = 40, .degree = 4, .steps = 1000};
  const auto wanted = em3d::compute_alone(s, 1, 0);
  const auto run = [&](std::uint32_t stale_step) {
    std::array<em3d::part, 2> parts{em3d::make_part(s, 1, 0, em3d::e),
                                    em3d::make_part(s, 1, 0, em3d::h)};
    std::array<em3d::exchange, 2> from{em3d::make_exchange(s, 1, 0, em3d::e),
                                       em3d::make_exchange(s, 1, 0, em3d::h)};
    em3d::node old;
    for (std::uint32_t step = 0; step < s.all_steps(); ++step) {
      for (const em3d::kind k : {em3d::e, em3d::h}) {
        std::vector<em3d::node> values = parts[em3d::other(k)].nodes;
        if (k == em3d::e && step == stale_step) values[7] = old;
        if (k == em3d::e) old = parts[em3d::h].nodes[7];
        em3d::update_here(parts[k].nodes, parts[k].weights, s.degree, from[em3d::other(k)].sources,
                          values.data());
      }
    }
    em3d::values_of_rank found;
    for (const em3d::kind k : {em3d::e, em3d::h}) {
      for (const em3d::node& n : parts[k].nodes) found[k].push_back(n.value);
    }
    return found;
  };
  EXPECT_EQ(em3d::difference(run(~0u), wanted), "");
  EXPECT_NE(em3d::difference(run(10), wanted), "");
  EXPECT_NE(em3d::difference(run(500), wanted), "");
  auto nowhere = wanted;
  nowhere[em3d::h][3] = std::nan("");
  EXPECT_NE(em3d::difference(nowhere, wanted), "");
}

TEST(water, each_pair_is_computed_once) {
  for (const std::uint32_t n : {2u, 3u, 8u, 27u, 64u}) {
    const water::settings s{.molecules = n};
    std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
    std::uint32_t computed = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t k = 1; k <= water::partners(s, i); ++k, ++computed) {
        pairs.insert(std::minmax(i, (i + k) % n));
      }
    }
    EXPECT_EQ(pairs.size(), n * (n - 1) / 2);
    EXPECT_EQ(computed, pairs.size());
  }
}

TEST(water, forces_between_molecules_are_the_slope_of_their_energy) {
  const water::settings s{.molecules = 64};
  const water::box b(s);
  water::motion all(s, 0, s.molecules);
  std::vector<water::sites> positions(s.molecules);
  std::vector<water::sites> forces(s.molecules);
  all.predict(positions, forces);
  bool in_reach = false;
  for (const std::size_t other : {1u, 2u, 5u, 21u}) {
    water::sites on_first;
    water::sites on_other;
    water::interact(b, positions[0], positions[other], on_first, on_other, &in_reach);
    ASSERT_TRUE(in_reach);
    constexpr double h = 1e-5;
    for (std::size_t atom = 0; atom < 3; ++atom) {
      for (std::size_t x = 0; x < 3; ++x) {
        const auto energy_at = [&](double moved) {
          water::sites p = positions[0];
          p.at[atom][x] += moved;
          water::sites unused_p;
          water::sites unused_q;
          return water::interact(b, p, positions[other], unused_p, unused_q, &in_reach);
        };
        EXPECT_NEAR(on_first.at[atom][x], -(energy_at(h) - energy_at(-h)) / (2 * h), 1e-5);
      }
    }
    for (std::size_t x = 0; x < 3; ++x) {
      double sum = 0;
      for (std::size_t atom = 0; atom < 3; ++atom) {
        sum += on_first.at[atom][x] + on_other.at[atom][x];
      }
      EXPECT_NEAR(sum, 0, 1e-9);
    }
  }
}

TEST(water, forces_inside_a_molecule_are_the_slope_of_its_energy) {
  // Told from what the integrator does: with no forces between molecules, energy stays.
  water::settings s{.molecules = 2, .steps = 400, .warm_up = 20};
  water::motion all(s, 0, s.molecules);
  std::vector<water::sites> positions(s.molecules);
  std::vector<water::sites> forces(s.molecules);
  double first = 0;
  double most = 0;
  for (std::uint32_t step = 0; step < s.all_steps(); ++step) {
    const double intra = all.predict(positions, forces);
    const double total = intra + all.correct(forces);
    if (step == s.warm_up) first = total;
    if (step > s.warm_up) most = std::max(most, std::abs(total - first));
  }
  EXPECT_GT(first, 1);
  EXPECT_LT(most, 2e-3 * first);
}

TEST(water, the_energy_of_the_system_stays) {
  const water::settings s{.molecules = 64, .steps = 200, .warm_up = 20};
  const water::reference r = water::compute_alone(s, 1, 0);
  // Potential energy has become motion meanwhile.
  EXPECT_GT(std::abs(r.last.kinetic - r.first.kinetic), 10);
  EXPECT_NEAR(r.last.total(), r.first.total(), 2e-3 * r.last.kinetic);
}

TEST(water, wrong_energies_and_places_are_noticed) {
  const water::settings s{.molecules = 27, .steps = 5};
  const water::reference r = water::compute_alone(s, 3, 1);
  EXPECT_EQ(r.positions.size(), 9u);
  EXPECT_EQ(water::difference(s, r.last, r.positions, r), "");
  water::energies wrong = r.last;
  wrong.inter *= 1 + 1e-6;
  EXPECT_NE(water::difference(s, wrong, r.positions, r), "");
  auto moved = r.positions;
  moved[4].at[2][1] += 1e-6;
  EXPECT_NE(water::difference(s, r.last, moved, r), "");
}

TEST(gups, a_stream_that_begins_later_goes_on_as_the_first_does) {
  gups::update_stream all(0);
  constexpr std::uint64_t apart = 1000;
  for (std::uint64_t n = 0; n < 3 * apart; ++n) {
    gups::update_stream later(n);
    const std::uint64_t update = all.next();
    EXPECT_EQ(later.next(), update);
  }
  // x^64 is x^2 + x + 1.
  EXPECT_EQ(gups::update_stream(63).next(), 7u);
}

TEST(gups, lost_double_and_misplaced_updates_are_noticed) {
  const gups::settings s{.log2_words = 6, .updates = 500};
  constexpr int ranks = 3;
  constexpr int me = 1;
  const gups::places of(s, ranks);
  std::vector<std::uint64_t> mine;  // all updates of rank 1's words
  for (int r = 0; r < ranks; ++r) {
    gups::update_stream stream = gups::updates_of(s, r);
    for (std::uint64_t i = 0; i < s.updates; ++i) {
      const std::uint64_t update = stream.next();
      ASSERT_LT(of.rank_of(update), ranks);
      if (of.rank_of(update) == me) mine.push_back(update);
    }
  }
  const auto errors = [&](auto change) {
    std::vector<std::uint64_t> table = gups::new_table(s, me);
    for (const std::uint64_t u : mine) table[of.word_of(u)] ^= u;
    change(table);
    return gups::count_errors(s, ranks, me, table);
  };
  EXPECT_GT(mine.size(), 100u);
  EXPECT_EQ(errors([](auto&) {}), 0u);
  EXPECT_EQ(errors([&](auto& table) { table[of.word_of(mine[7])] ^= mine[7]; }), 1u);
  EXPECT_EQ(errors([&](auto& table) {
              const std::uint64_t word = of.word_of(mine[7]);
              table[word] ^= mine[7];
              table[(word + 1) & of.mask] ^= mine[7];
            }),
            2u);
}

TEST(time_split, parts_add_up_to_the_whole_and_the_rest_is_net) {
  const apps::time_split s = apps::split_of(10, 4, 1, 2, 0.5);
  EXPECT_DOUBLE_EQ(s.net, 2.5);
  EXPECT_DOUBLE_EQ(s.cpu + s.net + s.threads + s.sync + s.marshalling, s.total);
}

TEST(time_split, what_is_more_than_there_was_is_made_to_fit) {
  const apps::time_split s = apps::split_of(10, 4, 4, 4, 4);
  EXPECT_DOUBLE_EQ(s.net, 0);
  EXPECT_DOUBLE_EQ(s.threads, 2);
  EXPECT_DOUBLE_EQ(apps::split_of(10, 12, 1, 0, 0).cpu, 10);
}

}  // namespace
