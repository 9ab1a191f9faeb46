// SPDX-License-Identifier: Apache-2.0
// The nine applications on threads of one process: they compute what their references do, and
// their checks would notice if they did not.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nine/kernel/adi.hpp"
#include "nine/kernel/difference.hpp"
#include "nine/kernel/fft3d.hpp"
#include "nine/kernel/ocean.hpp"
#include "nine/kernel/share.hpp"
#include "nine/kernel/sor.hpp"
#include "nine/kernel/swm.hpp"
#include "nine/kernel/threads_machine.hpp"

namespace {

namespace nine = apps::nine;
using nine::threads_machine;

constexpr double pi = std::numbers::pi;

/// What a program has allocated by that name, or a part of its name: the first of them.
template <class T = double>
std::span<T> shared(const threads_machine& m, std::string_view name) {
  for (const threads_machine::allocation& a : m.allocations()) {
    if (a.name.find(name) == std::string::npos) continue;
    return {reinterpret_cast<T*>(a.bytes.data()), a.bytes.size() / sizeof(T)};
  }
  ADD_FAILURE() << "nothing is called " << name;
  return {};
}

double total(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// A program that is one function.
template <class Run>
class function final : public nine::application {
 public:
  explicit function(Run run) : run_(run) {}
  void prepare(nine::machine& /*m*/) override {}
  void run(nine::machine& m, int thread) override { run_(m, thread); }
  std::string check() const override { return {}; }
  double checksum() const override { return 0; }

 private:
  Run run_;
};

template <class Run>
void run_threads(threads_machine& m, Run run) {
  function<Run> program(run);
  nine::run_on_threads(program, m);
}

TEST(threads_machine, memory_begins_on_a_page_as_zeros) {
  threads_machine m(1);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{100'000}}) {
    const std::span<char> memory = m.array<char>(bytes, "memory");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 4096, 0u);
    EXPECT_TRUE(std::ranges::all_of(memory, [](char c) { return c == 0; }));
  }
}

TEST(threads_machine, what_was_stored_before_a_barrier_is_there_after_it) {
  threads_machine m(5);
  const std::span<int> stored = m.array<int>(5, "stored");
  std::array<int, 5> wrong{};
  run_threads(m, [&](nine::machine& machine, int thread) {
    const auto me = static_cast<std::size_t>(thread);
    for (int round = 1; round <= 200; ++round) {
      stored[me] = round;
      machine.barrier(thread);
      for (const int other : stored) wrong[me] += other == round ? 0 : 1;
      machine.barrier(thread);
    }
  });
  EXPECT_EQ(wrong, (std::array<int, 5>{}));
}

TEST(threads_machine, one_thread_at_a_time_has_a_lock) {
  threads_machine m(4);
  const std::span<int> counts = m.array<int>(2, "counts");
  run_threads(m, [&](nine::machine& machine, int thread) {
    for (int i = 0; i < 2000; ++i) {
      const int number = i % 2;
      machine.lock(thread, number * (nine::machine::locks_max - 1));
      ++counts[static_cast<std::size_t>(number)];
      machine.unlock(thread, number * (nine::machine::locks_max - 1));
    }
  });
  EXPECT_EQ(counts[0], 4000);
  EXPECT_EQ(counts[1], 4000);
}

TEST(threads_machine, reductions_give_all_threads_the_same_in_every_round) {
  threads_machine m(7);
  std::array<bool, 7> right{};
  run_threads(m, [&](nine::machine& machine, int thread) {
    bool all = true;
    for (int round = 0; round < 100; ++round) {
      double expected = 0;
      for (int other = 0; other < 7; ++other) expected += 0.1 * other + round;
      all = all && machine.sum(thread, 0.1 * thread + round) == expected;
      all = all && machine.greatest(thread, (thread * 3 + round) % 7 - 10.0) == -4;
      if (round % 3 == 0) machine.barrier(thread);
    }
    right[static_cast<std::size_t>(thread)] = all;
  });
  for (const bool all : right) EXPECT_TRUE(all);
}

TEST(nine_share, each_part_has_one_thread_and_neighbours_follow_one_another) {
  for (const std::size_t parts : {0u, 1u, 5u, 16u, 125u}) {
    for (int threads = 1; threads <= 16; ++threads) {
      std::size_t end = 0;
      for (int thread = 0; thread < threads; ++thread) {
        const nine::share s = nine::share_of(parts, threads, thread);
        EXPECT_EQ(s.first, end);
        EXPECT_LE(s.end - s.first, parts / static_cast<std::size_t>(threads) + 1);
        end = s.end;
      }
      EXPECT_EQ(end, parts);
    }
  }
}

TEST(nine_difference, tells_what_is_furthest_and_where) {
  const std::array<double, 6> expected = {1, 2, 3, 4, 5, 6};
  std::array<double, 6> result = expected;
  EXPECT_EQ(nine::difference("x", {2, 3}, result, expected, 0.1), "");
  result[1] = 2.05;
  EXPECT_EQ(nine::difference("x", {2, 3}, result, expected, 0.1), "");
  result[3] = 4.25;
  result[5] = 7;
  EXPECT_EQ(
      nine::difference("x", {2, 3}, result, expected, 0.1),
      "x: 2 of 6 values differ from the reference by more than 0.1, most of all [1][2], which "
      "is 7 in place of 6");
  result[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(nine::difference("x", {2, 3}, result, expected, 0.1).find("[0][0]"), std::string::npos);
}

TEST(nine, applications_are_found_by_their_names) {
  for (const nine::application_entry& entry : nine::applications()) {
    EXPECT_EQ(nine::find_application(entry.name), &entry);
  }
  EXPECT_EQ(nine::find_application("tsp"), nullptr);
}

class nine_on_threads : public testing::TestWithParam<int> {};

TEST_P(nine_on_threads, results_are_those_of_one_thread) {
  for (const nine::application_entry& entry : nine::applications()) {
    SCOPED_TRACE(entry.name);
    double alone = 0;
    for (const int threads : {1, GetParam()}) {
      threads_machine m(threads);
      const auto program = entry.make(nine::problem_size::small);
      nine::run_on_threads(*program, m);
      EXPECT_EQ(program->check(), "");
      if (threads == 1) alone = program->checksum();
      EXPECT_NEAR(program->checksum(), alone, 1e-9 * std::abs(alone));
    }
  }
}
INSTANTIATE_TEST_SUITE_P(any, nine_on_threads, testing::Values(2, 3, 4, 7, 16));

TEST(nine, a_program_may_run_again_on_another_machine) {
  for (const nine::application_entry& entry : nine::applications()) {
    SCOPED_TRACE(entry.name);
    const auto program = entry.make(nine::problem_size::small);
    for (const int threads : {3, 2}) {
      threads_machine m(threads);
      nine::run_on_threads(*program, m);
      EXPECT_EQ(program->check(), "");
    }
  }
}

/// Puts a wrong value in place of each of some results in turn.
void expect_noticed(const char* name, std::initializer_list<const char*> results) {
  SCOPED_TRACE(name);
  const nine::application_entry* entry = nine::find_application(name);
  ASSERT_NE(entry, nullptr);
  threads_machine m(2);
  const auto program = entry->make(nine::problem_size::small);
  nine::run_on_threads(*program, m);
  ASSERT_EQ(program->check(), "");
  for (const char* result : results) {
    SCOPED_TRACE(result);
    const std::span<double> values = shared(m, result);
    // Its greatest, as there may be room between those that mean something.
    double& value = *std::ranges::max_element(values, {}, [](double v) { return std::abs(v); });
    const double right = value;
    for (const double wrong : {right * (1 + 1e-5), 0.0, std::numeric_limits<double>::quiet_NaN()}) {
      value = wrong;
      EXPECT_NE(program->check(), "") << right << " became " << wrong;
    }
    value = right;
  }
  EXPECT_EQ(program->check(), "");
}

TEST(nine, checks_notice_a_wrong_value) {
  expect_noticed("adi", {"planes of y"});
  expect_noticed("fft3d", {"field", "spectrum"});
  expect_noticed("ocean", {"stream", "vorticity", "energy"});
  expect_noticed("sor", {"red", "black"});
  expect_noticed("swm", {": u", ": v", ": potential"});
}

TEST(nine_adi, a_constant_stays) {
  threads_machine m(3);
  const auto program = nine::make_adi(
      {.side = 11, .steps = 9, .first = [](std::size_t, std::size_t, std::size_t) { return 7.0; }});
  nine::run_on_threads(*program, m);
  for (const double heat : shared(m, "planes of y")) ASSERT_NEAR(heat, 7, 1e-13);
}

// Cosines are eigenvectors of each direction's matrix: a step divides them by its eigenvalue.
TEST(nine_adi, waves_decay_by_what_their_length_says) {
  constexpr std::size_t side = 20;
  constexpr int steps = 5;
  constexpr auto wave = [](std::size_t x, std::size_t y, std::size_t z) {
    const auto cosine = [](int halves, std::size_t i) {
      return std::cos(pi * halves * (static_cast<double>(i) + 0.5) / side);
    };
    return cosine(3, x) * cosine(1, y) * cosine(6, z);
  };
  threads_machine m(4);
  const auto program = nine::make_adi({.side = side, .steps = steps, .first = wave});
  nine::run_on_threads(*program, m);
  double factor = 1;
  for (const int halves : {3, 1, 6}) {
    factor /= 1 + 2 * nine::adi_ratio * (1 - std::cos(pi * halves / side));
  }
  const std::span<double> heat = shared(m, "planes of y");
  for (std::size_t i = 0; i < heat.size(); ++i) {
    const double first = wave(i % side, i / side / side, i / side % side);
    ASSERT_NEAR(heat[i], first * std::pow(factor, steps), 1e-13);
  }
}

TEST(nine_fft3d, an_impulse_has_all_waves) {
  constexpr std::size_t side = 16;
  threads_machine m(3);
  // At [z][y][x] = [3][2][1], where a wave has turned by its numbers of periods times these.
  const auto program = nine::make_fft3d(
      {.side = side, .iterations = 0, .diffusion = 0, .first = [](auto x, auto y, auto z) {
         return std::complex<double>(x == 1 && y == 2 && z == 3 ? 1 : 0);
       }});
  nine::run_on_threads(*program, m);
  const auto spectrum = shared<std::complex<double>>(m, "spectrum");
  for (std::size_t i = 0; i < spectrum.size(); ++i) {
    const std::size_t turns = 1 * (i / side / side) + 3 * (i / side % side) + 2 * (i % side);
    const auto wave = std::polar(1.0, -2 * pi * static_cast<double>(turns % side) / side);
    ASSERT_NEAR(std::abs(spectrum[i] - wave), 0, 1e-14);
  }
}

TEST(nine_fft3d, back_it_gives_what_went_forward) {
  constexpr auto field = [](std::size_t x, std::size_t y, std::size_t z) {
    return std::complex<double>(static_cast<double>((5 * x + 3 * y + z) % 7),
                                static_cast<double>(x * y % 5));
  };
  for (const std::size_t side : {8u, 16u, 32u}) {
    threads_machine m(2);
    const auto program =
        nine::make_fft3d({.side = side, .iterations = 2, .diffusion = 0, .first = field});
    nine::run_on_threads(*program, m);
    const auto back = shared<std::complex<double>>(m, "field");
    for (std::size_t i = 0; i < back.size(); ++i) {
      const auto expected = field(i % side, i / side % side, i / side / side);
      ASSERT_NEAR(std::abs(back[i] - expected), 0, 1e-13);
    }
  }
}

TEST(nine_ocean, a_cycle_divides_the_residual_by_five_at_least) {
  for (const std::size_t side : {4u, 8u, 64u}) {
    threads_machine m(3);
    const auto program = nine::make_ocean({.side = side, .steps = 4});
    nine::run_on_threads(*program, m);
    const std::span<double> residuals = shared(m, "residuals");
    for (std::size_t solve = 0; solve < 5; ++solve) {
      const auto of_solve = residuals.subspan(solve * (nine::ocean_cycles_max + 1));
      std::size_t cycle = 0;
      for (; of_solve[cycle] > nine::ocean_tolerance; ++cycle) {
        ASSERT_LT(cycle, nine::ocean_cycles_max);
        EXPECT_LT(of_solve[cycle + 1], of_solve[cycle] / 5) << side;
      }
      EXPECT_GT(cycle, 1u);
    }
  }
}

TEST(nine_ocean, small_oceans_have_threads_without_rows) {
  threads_machine m(16);
  const auto program = nine::make_ocean({.side = 8, .steps = 3});
  nine::run_on_threads(*program, m);
  EXPECT_EQ(program->check(), "");
}

TEST(nine_sor, converges_to_the_harmonic_function_of_its_edge) {
  constexpr std::size_t side = 34;
  threads_machine m(3);
  const auto program = nine::make_sor({.side = side, .iterations = 300});
  nine::run_on_threads(*program, m);
  const std::span<double> red = shared(m, "red");
  for (std::size_t row = 0; row < side; ++row) {
    for (std::size_t column = row % 2; column < side; column += 2) {
      const double x = static_cast<double>(column) / (side - 1);
      const double y = static_cast<double>(row) / (side - 1);
      ASSERT_NEAR(red[row * side / 2 + column / 2], x * x - y * y, 1e-12);
    }
  }
}

TEST(nine_swm, mass_is_conserved) {
  constexpr std::size_t side = 30;
  const auto mass = [](int steps) {
    threads_machine m(3);
    const auto program = nine::make_swm({.side = side, .steps = steps});
    nine::run_on_threads(*program, m);
    double sum = 0;
    for (std::size_t row = 0; row < side; ++row) {
      sum += total(shared(m, "potential").subspan(row * (side + 2) + 1, side));
    }
    return sum;
  };
  const double first = mass(0);
  EXPECT_NEAR(first, 5e4 * side * side, 1e-3);
  EXPECT_NEAR(mass(50), first, 1e-12 * first);
}

TEST(nine_swm, waves_move) {
  const auto first = nine::make_swm({.side = 30, .steps = 0});
  const auto later = nine::make_swm({.side = 30, .steps = 50});
  threads_machine m(2);
  nine::run_on_threads(*first, m);
  threads_machine other(2);
  nine::run_on_threads(*later, other);
  EXPECT_GT(std::abs(first->checksum() - later->checksum()), 1e-3 * first->checksum());
}

}  // namespace
