// SPDX-License-Identifier: Apache-2.0
// The four applications that move particles: they compute the same on any number of threads, keep
// what nature keeps, and notice values that are wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>
#include <utility>

#include "nine/kernel/applications.hpp"
#include "nine/kernel/barnes_program.hpp"
#include "nine/kernel/threads_machine.hpp"
#include "nine/kernel/water_cells.hpp"
#include "nine/kernel/water_program.hpp"

namespace {

using namespace apps::nine;

double length(const vec& v) { return std::sqrt(dot(v, v)); }

struct named_application {
  const char* name;
  std::unique_ptr<application> (*make)(problem_size size);
};
constexpr named_application applications_here[] = {{"barnes", make_barnes},
                                                   {"spatial", make_spatial},
                                                   {"spatial_local", make_spatial_local},
                                                   {"water_nsq", make_water_nsq}};

class nine_particles : public testing::TestWithParam<named_application> {};
INSTANTIATE_TEST_SUITE_P(all, nine_particles, testing::ValuesIn(applications_here),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(nine_particles, any_number_of_threads_computes_what_the_reference_does) {
  double on_one = 0;
  for (const int threads : {1, 2, 3, 4, 7, 16}) {
    threads_machine m(threads);
    const auto a = GetParam().make(problem_size::small);
    run_on_threads(*a, m);
    EXPECT_EQ(a->check(), "") << threads << " threads";
    if (threads == 1) on_one = a->checksum();
    EXPECT_NEAR(a->checksum(), on_one, 1e-9 * std::abs(on_one)) << threads << " threads";
  }
}

/// Which of the allocations hold what is checked when all threads have ended.
bool holds_results(std::string_view name) {
  constexpr std::array<std::string_view, 5> names{"positions", "velocities", "energies",
                                                  "molecules", "velocities and accelerations"};
  return std::ranges::find(names, name) != names.end();
}

TEST_P(nine_particles, a_wrong_value_in_the_results_is_noticed) {
  // The same each time, but with --gtest_shuffle.
  const int seed = testing::UnitTest::GetInstance()->random_seed();
  SCOPED_TRACE(testing::Message() << "--gtest_shuffle --gtest_random_seed=" << seed);
  std::minstd_rand random(static_cast<unsigned>(seed) + 1);
  threads_machine m(3);
  const auto a = GetParam().make(problem_size::small);
  run_on_threads(*a, m);
  const double whole = a->checksum();
  int noticed = 0;
  for (const threads_machine::allocation& memory : m.allocations()) {
    if (!holds_results(memory.name)) continue;
    const std::size_t doubles = memory.bytes.size() / sizeof(double);
    for (bool is_result = false; !is_result;) {
      std::byte* at = memory.bytes.data() + random() % doubles * sizeof(double);
      double value = 0;
      std::memcpy(&value, at, sizeof value);
      // Some pages are not full, and numbers of particles look like zeros.
      if (!(std::abs(value) > 1e-6)) continue;
      const double wrong = value * 1.001 + 1e-3;
      std::memcpy(at, &wrong, sizeof wrong);
      // Forces lie among the results, and are none.
      is_result = memory.name == "energies" || a->checksum() != whole;
      if (is_result) {
        EXPECT_NE(a->check(), "") << value << " in " << memory.name;
        ++noticed;
      }
      std::memcpy(at, &value, sizeof value);
    }
  }
  EXPECT_EQ(a->checksum(), whole);
  EXPECT_GE(noticed, 2);
}

/// Runs the program that an input makes.
template <class Program, class Input>
auto results_of(std::unique_ptr<Program> (*make)(const Input&), const Input& in, int threads) {
  threads_machine m(threads);
  const auto program = make(in);
  run_on_threads(*program, m);
  return program->gather();
}

constexpr std::array water_makers{water::make_water_nsq, water::make_spatial,
                                  water::make_spatial_local};

TEST(nine_water, the_three_programs_agree_on_one_input) {
  // Three cells along a side, four and five.
  for (const water::input& in : {water::input{.per_side = 6, .cutoff = 6.2, .steps = 100},
                                 water::cells_input(problem_size::small),
                                 water::input{.per_side = 8, .cutoff = 4.9, .steps = 100}}) {
    const water::results wanted = results_of(water_makers[0], in, 1);
    for (const auto make : water_makers) {
      EXPECT_EQ(water::difference(in, results_of(make, in, 5), wanted), "");
    }
  }
}

TEST(nine_water, molecules_go_to_other_cells_and_around_the_cube) {
  const water::input in = water::cells_input(problem_size::small);
  const water::cell_grid grid(in);
  const water::results r = results_of(water::make_spatial, in, 2);
  int to_other_cells = 0;
  int around_the_cube = 0;
  for (std::size_t i = 0; i < in.molecules(); ++i) {
    const water::sites start = water::first_position(in, i);
    const vec& p = r.positions[i].at[0];
    to_other_cells += grid.cell_of(start) != grid.cell_of(r.positions[i]) ? 1 : 0;
    around_the_cube += length(start.at[0] - p) > in.side() / 2 ? 1 : 0;
    EXPECT_LE(std::max({p.x, p.y, p.z}), in.side());
    EXPECT_GE(std::min({p.x, p.y, p.z}), 0);
  }
  EXPECT_GT(to_other_cells, 20);
  EXPECT_GT(around_the_cube, 10);
}

/// The greatest change of the energy, as a share of the greatest kinetic energy.
double energy_change(const water::results& r) {
  double change = 0;
  double heat = 0;
  for (const water::energies& e : r.history) {
    change = std::max(change, std::abs(e.total() - r.history.front().total()));
    heat = std::max(heat, e.kinetic);
  }
  return change / heat;
}

TEST(nine_water, energy_is_conserved_the_better_the_smaller_the_steps) {
  const water::input in{.per_side = 6, .cutoff = 6.2, .steps = 200};
  const water::input in_small_steps{.per_side = 6, .cutoff = 6.2, .steps = 800, .step_fs = 0.125};
  for (const auto make : water_makers) {
    const water::results r = results_of(make, in, 2);
    ASSERT_EQ(r.history.size(), in.steps + 1);
    // There is something to conserve: the potential energy of the lattice becomes heat.
    EXPECT_GT(r.history.back().kinetic, 1.2 * r.history.front().kinetic);
    EXPECT_LT(energy_change(r), 3e-3);
    // The error is of second order.
    EXPECT_LT(energy_change(results_of(make, in_small_steps, 2)), 3e-3 / 12);
  }
}

TEST(nine_water, momentum_is_conserved) {
  const water::input in{.per_side = 6, .cutoff = 6.2, .steps = 100};
  for (const auto make : water_makers) {
    vec momentum;
    double amount = 0;
    for (const water::sites& v : results_of(make, in, 3).velocities) {
      for (std::size_t i = 0; i < 3; ++i) {
        momentum += water::mass[i] * v.at[i];
        amount += water::mass[i] * length(v.at[i]);
      }
    }
    EXPECT_LT(length(momentum), 1e-12 * amount);
  }
}

TEST(nine_water, forces_are_the_slope_of_the_energy) {
  const water::input in{.per_side = 8, .cutoff = 6.2, .steps = 0};
  const water::interaction act(in);
  constexpr double h = 1e-6;
  water::sites unused;
  const water::sites p{{vec{0.3, 5, 24.5}, vec{1.2, 5.1, 24.3}, vec{0.1, 5.8, 25}}};
  // Near, between 0.9 times the cutoff and it, on the other side of the cube, and out of reach.
  for (const vec& oxygen :
       {vec{2.9, 5, 24.4}, vec{2, 10.6, 23.9}, vec{23, 4, 0.7}, vec{8, 8, 20}}) {
    const water::sites q{{oxygen, oxygen + vec{0.9, 0.2, -0.3}, oxygen + vec{-0.3, 0.8, 0.4}}};
    water::sites on_p;
    water::sites on_q;
    act(p, q, on_p, on_q);
    water::sites inside;
    water::act_inside(p, inside);
    for (std::size_t atom = 0; atom < 3; ++atom) {
      for (double vec::* axis : {&vec::x, &vec::y, &vec::z}) {
        const auto slope = [&](const water::sites& moved, const auto& energy) {
          water::sites up = moved;
          water::sites down = moved;
          up.at[atom].*axis += h;
          down.at[atom].*axis -= h;
          return (energy(up) - energy(down)) / (2 * h);
        };
        const double by_p =
            slope(p, [&](const water::sites& s) { return act(s, q, unused, unused); });
        const double by_q =
            slope(q, [&](const water::sites& s) { return act(p, s, unused, unused); });
        const double by_form =
            slope(p, [&](const water::sites& s) { return water::act_inside(s, unused); });
        EXPECT_NEAR(on_p.at[atom].*axis, -by_p, 1e-6);
        EXPECT_NEAR(on_q.at[atom].*axis, -by_q, 1e-6);
        EXPECT_NEAR(inside.at[atom].*axis, -by_form, 1e-5);
      }
    }
  }
}

TEST(nine_water, a_pair_fades_out_at_the_cutoff) {
  const water::input in{.per_side = 8, .cutoff = 6.2, .steps = 0};
  const water::interaction act(in);
  const water::sites p = water::first_position(in, 0);
  for (const double beyond : {-1e-6, 1e-6}) {
    water::sites q = p;
    for (vec& atom : q.at) atom.y += in.cutoff + beyond;
    water::sites on_p;
    water::sites on_q;
    EXPECT_NEAR(act(p, q, on_p, on_q), 0, 1e-9);
    EXPECT_LT(length(on_p.at[0]) + length(on_p.at[1]) + length(on_q.at[0]), 1e-4);
  }
}

TEST(nine_barnes, energy_and_momentum_are_conserved_as_far_as_cells_allow) {
  // What a cell does to a particle is not just what the particle does to the cell.
  for (const auto& [opening, tolerance] : {std::pair(0.7, 5e-3), {0.35, 5e-4}}) {
    const barnes::input in{.particles = 1024, .steps = 50, .opening = opening};
    const barnes::results r = results_of(barnes::make_barnes, in, 2);
    EXPECT_LT(r.energy_before, 0);
    EXPECT_NEAR(r.energy_after, r.energy_before, 2e-3 * std::abs(r.energy_before));
    vec momentum;
    double amount = 0;
    for (const barnes::particle& p : r.particles) {
      momentum += p.velocity;
      amount += length(p.velocity);
    }
    EXPECT_LT(length(momentum), tolerance * amount) << opening;
  }
}

TEST(nine_barnes, cells_that_are_always_opened_give_the_direct_sum) {
  const barnes::input in{.particles = 300, .steps = 1, .opening = 1e-9};
  const barnes::results r = results_of(barnes::make_barnes, in, 3);
  for (const barnes::particle& p : r.particles) {
    barnes::field f;
    for (const barnes::particle& other : r.particles) {
      barnes::add_point(f, in.softening, in.mass(), other.position - p.position);
    }
    EXPECT_LT(length(p.acceleration - f.acceleration), 1e-12);
  }
}

TEST(nine_barnes, smaller_openings_come_closer_to_the_direct_sum) {
  double last = 1;
  for (const double opening : {1.0, 0.7, 0.5, 0.35}) {
    const barnes::input in{.particles = 2048, .steps = 1, .opening = opening};
    const barnes::results r = results_of(barnes::make_barnes, in, 2);
    double squares = 0;
    for (const barnes::particle& p : r.particles) {
      barnes::field f;
      for (const barnes::particle& other : r.particles) {
        barnes::add_point(f, in.softening, in.mass(), other.position - p.position);
      }
      const vec apart = p.acceleration - f.acceleration;
      squares += dot(apart, apart) / dot(f.acceleration, f.acceleration);
    }
    // The first term that is left out, that after the quadrupole, goes with the cube.
    const double error = std::sqrt(squares / 2048);
    EXPECT_LT(error, 0.5 * last) << opening;
    last = error;
  }
  EXPECT_LT(last, 5e-4);
}

TEST(nine_barnes, few_particles_on_many_threads_are_computed_too) {
  for (const std::size_t particles : {2u, 8u, 10u, 40u}) {
    const barnes::input in{.particles = particles, .steps = 20};
    const barnes::results wanted = barnes::simulate_alone(in);
    for (const int threads : {1, 5, 16}) {
      EXPECT_EQ(barnes::difference(results_of(barnes::make_barnes, in, threads), wanted), "")
          << particles << " particles on " << threads << " threads";
    }
  }
}

}  // namespace
