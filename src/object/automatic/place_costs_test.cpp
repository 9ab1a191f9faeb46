// SPDX-License-Identifier: Apache-2.0
#include "object/automatic/place_costs.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>

using sojourn::detail::place_costs;
using way = place_costs::way;

namespace {

/// What a trial costs, and for how many calls it pays, at some time of a program.
struct outcome {
  double cost;
  double calls;
};
struct program {
  std::function<outcome(std::uint64_t at, std::mt19937&)> migration;
  std::function<outcome(std::uint64_t at, std::mt19937&)> copy;
};

/// What `calls` calls cost, when the place chooses and each way has the outcomes of `what`.
double run(place_costs& place, const program& what, std::uint64_t calls, std::uint64_t begin = 0) {
  std::mt19937 random(7);
  double cost = 0;
  std::uint32_t left = place.calls_until_next();
  for (std::uint64_t at = begin; at < begin + calls;) {
    way taken = place.now();
    if (left-- == 0) {
      taken = place.next(place.calls_until_next() + 1);
      left = place.calls_until_next();
    }
    if (taken == way::rpc) {
      cost += 1;
      ++at;
      continue;
    }
    const outcome o = taken == way::migrate ? what.migration(at, random) : what.copy(at, random);
    place.learn(taken, o.cost, o.calls);
    cost += o.cost;
    at += static_cast<std::uint64_t>(o.calls);
  }
  return cost;
}

/// The same with one way from the beginning.
double run_fixed(way taken, const program& what, std::uint64_t calls, std::uint64_t begin = 0) {
  std::mt19937 random(7);
  double cost = 0;
  for (std::uint64_t at = begin; at < begin + calls;) {
    const outcome o = taken == way::rpc       ? outcome{1, 1}
                      : taken == way::migrate ? what.migration(at, random)
                                              : what.copy(at, random);
    cost += o.cost;
    at += static_cast<std::uint64_t>(o.calls);
  }
  return cost;
}

auto always(double cost, double calls) {
  return [=](std::uint64_t, std::mt19937&) { return outcome{cost, calls}; };
}
/// In one of `many` cases it pays for many calls.
auto seldom(unsigned many, double cost, double calls) {
  return [=](std::uint64_t, std::mt19937& random) {
    return outcome{cost, random() % many == 0 ? calls : 1};
  };
}

const program read_mostly{always(2, 1), always(3.5, 40)};
const program long_runs{always(1.5, 12), always(5, 6)};
const program write_shared{always(2, 1), always(5, 1)};
const program walk{always(0.7, 1), always(3.5, 1)};
/// One object that all need, and thousands that are used once.
const program tree{always(1.2, 1), seldom(64, 3.5, 60)};

constexpr std::uint64_t long_enough = 100'000;

}  // namespace

TEST(place_costs, a_place_that_is_seldom_used_calls_the_owner) {
  place_costs place(true, true);
  EXPECT_EQ(place.now(), way::rpc);
  EXPECT_EQ(place.calls_until_next(), 32u);
}

TEST(place_costs, each_program_gets_the_way_that_costs_least) {
  for (const auto& [what, best] :
       {std::pair(&read_mostly, way::bring), std::pair(&long_runs, way::migrate),
        std::pair(&write_shared, way::rpc), std::pair(&walk, way::migrate),
        std::pair(&tree, way::rpc)}) {
    place_costs place(true, true);
    (void)run(place, *what, long_enough);
    EXPECT_EQ(place.now(), best);
  }
}

TEST(place_costs, it_costs_little_more_than_the_best_way_would) {
  for (const program* what : {&read_mostly, &long_runs, &write_shared, &walk, &tree}) {
    place_costs place(true, true);
    const double chosen = run(place, *what, long_enough);
    const double best = std::min({run_fixed(way::rpc, *what, long_enough),
                                  run_fixed(way::migrate, *what, long_enough),
                                  run_fixed(way::bring, *what, long_enough)});
    EXPECT_LT(chosen, best * 1.1);
  }
}

TEST(place_costs, it_follows_a_program_that_changes) {
  place_costs place(true, true);
  double chosen = 0;
  double best = 0;
  std::uint64_t at = 0;
  for (const program* what : {&read_mostly, &write_shared, &long_runs, &write_shared}) {
    chosen += run(place, *what, long_enough, at);
    best += std::min({run_fixed(way::rpc, *what, long_enough),
                      run_fixed(way::migrate, *what, long_enough),
                      run_fixed(way::bring, *what, long_enough)});
    at += long_enough;
  }
  EXPECT_LT(chosen, best * 1.1);
  EXPECT_GE(place.changes(), 3u);
}

TEST(place_costs, what_is_not_possible_is_never_tried) {
  const program refuses{[](std::uint64_t, std::mt19937&) -> outcome {
                          ADD_FAILURE() << "a migration";
                          return {1, 1};
                        },
                        [](std::uint64_t, std::mt19937&) -> outcome {
                          ADD_FAILURE() << "a copy";
                          return {1, 1};
                        }};
  place_costs nothing(false, false);
  EXPECT_EQ(run(nothing, refuses, 10'000), 10'000);
}

TEST(place_costs, nothing_is_known_before_the_first_trial) {
  place_costs place(true, true);
  EXPECT_LT(place.cost_of(way::migrate), 0);
  EXPECT_LT(place.cost_of(way::bring), 0);
  EXPECT_EQ(place.cost_of(way::rpc), 1);
  place.learn(way::migrate, 3, 6);
  EXPECT_DOUBLE_EQ(place.cost_of(way::migrate), 0.5);
  EXPECT_EQ(place.trials(way::migrate), 1u);
}

TEST(place_costs, bringing_pays_when_it_is_taken_or_was_clearly_cheaper_when_it_was_tried) {
  place_costs place(true, true);
  EXPECT_FALSE(place.should_bring());
  place.learn(way::bring, 5, 32);
  EXPECT_EQ(place.now(), way::rpc);
  EXPECT_TRUE(place.should_bring());
  place.learn(way::bring, 5, 1);
  place.learn(way::bring, 5, 1);
  EXPECT_LT(place.cost_of(way::bring), 0.9);
  EXPECT_EQ(place.now(), way::bring);
  EXPECT_TRUE(place.should_bring());
  place_costs other(true, true);
  for (int i = 0; i < 3; ++i) other.learn(way::bring, 0.95, 1);
  EXPECT_EQ(other.now(), way::rpc);
  EXPECT_FALSE(other.should_bring());
}
