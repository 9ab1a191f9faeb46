// SPDX-License-Identifier: Apache-2.0
// What the applications share, where no job is needed to test it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "btree/workload.hpp"
#include "common/histogram.hpp"
#include "common/race.hpp"
#include "common/random.hpp"
#include "common/zipf.hpp"

namespace apps {
namespace {

TEST(zipf, draws_each_index_as_often_as_its_weight_says) {
  constexpr std::uint64_t items = 1000;
  constexpr int draws = 400000;
  const zipf z(items);
  random_source random(7);
  std::vector<int> seen(items);
  for (int i = 0; i < draws; ++i) ++seen[z.draw(random)];
  double zeta = 0;
  for (std::uint64_t i = 1; i <= items; ++i) zeta += std::pow(static_cast<double>(i), -0.99);
  // The first two are exact; further on Gray's formula is an approximation.
  EXPECT_NEAR(seen[0], draws / zeta, 0.03 * draws / zeta);
  EXPECT_NEAR(seen[1], draws / zeta / std::pow(2, 0.99), 0.05 * draws / zeta);
  int first_hundred = 0;
  for (int i = 0; i < 100; ++i) first_hundred += seen[static_cast<std::size_t>(i)];
  EXPECT_NEAR(first_hundred, 0.68 * draws, 0.04 * draws);
  EXPECT_GT(*std::ranges::max_element(seen), seen[500]);
}

TEST(zipf, stays_in_range_for_the_smallest_sets) {
  random_source random(1);
  for (std::uint64_t items : {1, 2, 3}) {
    const zipf z(items);
    for (int i = 0; i < 1000; ++i) {
      EXPECT_LT(z.draw(random), items);
      EXPECT_LT(z.draw_scrambled(random), items);
    }
  }
}

TEST(histogram, gives_percentiles_within_its_precision) {
  histogram h;
  for (std::uint64_t ns = 1; ns <= 100000; ++ns) h.add(ns);
  EXPECT_EQ(h.count(), 100000u);
  EXPECT_NEAR(h.percentile(0.5), 50000, 50000.0 / 32);
  EXPECT_NEAR(h.percentile(0.99), 99000, 99000.0 / 32);
  const histogram twice = h + h;
  EXPECT_EQ(twice.count(), 200000u);
  EXPECT_EQ(twice.percentile(0.5), h.percentile(0.5));
}

TEST(histogram, takes_any_duration) {
  histogram h;
  EXPECT_EQ(h.percentile(0.5), 0);
  h.add(0);
  EXPECT_LT(h.percentile(0.5), 1);
  h.add(~std::uint64_t{0});
  EXPECT_EQ(h.count(), 2u);
}

figures at(double per_second) {
  figures f;
  f.operations = 1000;
  f.seconds = 1000 / per_second;
  return f;
}

TEST(race, the_faster_one_wins_only_beyond_the_noise) {
  race clear;
  for (double noise : {1.0, 1.2, 0.9, 1.1, 0.8}) clear.add(at(100 * noise), at(150 * noise));
  EXPECT_EQ(clear.who(), race::winner::second);
  EXPECT_NEAR(clear.ratio(), 1.5, 1e-9);

  race reversed;
  for (double noise : {1.0, 1.2, 0.9}) reversed.add(at(150 * noise), at(100 * noise));
  EXPECT_EQ(reversed.who(), race::winner::first);

  race close;
  for (double noise : {1.0, 1.2, 0.9}) close.add(at(100 * noise), at(102 * noise));
  EXPECT_EQ(close.who(), race::winner::tie);

  race undecided;
  for (double r : {1.3, 0.9, 1.2, 0.8, 1.4}) undecided.add(at(100), at(100 * r));
  EXPECT_EQ(undecided.who(), race::winner::tie);
}

TEST(race, reports_medians) {
  race r;
  for (double speed : {100.0, 500.0, 200.0}) r.add(at(speed), at(speed));
  EXPECT_NEAR(r.first().per_second(), 200, 1e-6);
  EXPECT_EQ(r.first().operations, 1000u);
}

using stream = request_stream<text_key, text_value>;

dataset<text_key> hundred_records() {
  std::vector<text_key> keys;
  for (int i = 0; i < 100; ++i) keys.emplace_back("record" + std::to_string(i));
  return dataset<text_key>(keys);
}

TEST(workload, streams_repeat_themselves) {
  const auto data = hundred_records();
  for (const workload& what : workloads()) {
    stream one(data, what, 2, 5, 1), again(data, what, 2, 5, 1), other(data, what, 2, 5, 2);
    int different = 0;
    for (int i = 0; i < 300; ++i) {
      const auto a = one.next(), b = again.next(), c = other.next();
      EXPECT_EQ(a.kind, b.kind);
      EXPECT_EQ(a.key, b.key);
      EXPECT_EQ(a.value, b.value);
      different += a.key != c.key;
    }
    EXPECT_GT(different, 100);
  }
}

TEST(workload, no_two_requesters_write_the_same_record) {
  const auto data = hundred_records();
  for (const workload& what : workloads()) {
    std::set<text_key> written_by_others;
    for (int requester = 0; requester < 7; ++requester) {
      stream requests(data, what, requester, 7, 1);
      std::set<text_key> written;
      for (int i = 0; i < 500; ++i) {
        const auto r = requests.next();
        if (r.kind != request_kind::update && r.kind != request_kind::insert) continue;
        EXPECT_FALSE(written_by_others.contains(r.key));
        EXPECT_TRUE((belongs_to<text_key, text_value>(r.value, r.key)));
        if (r.kind == request_kind::insert) {
          EXPECT_TRUE(written.insert(r.key).second);
        }
        written.insert(r.key);
      }
      written_by_others.merge(written);
    }
  }
}

TEST(workload, mixes_are_those_of_ycsb) {
  const auto data = hundred_records();
  for (const workload& what : workloads()) {
    EXPECT_EQ(what.read + what.update + what.insert + what.scan, 100);
    stream requests(data, what, 0, 1, 1);
    std::array<int, 4> seen{};
    for (int i = 0; i < 10000; ++i) ++seen[static_cast<std::size_t>(requests.next().kind)];
    EXPECT_NEAR(seen[0], 100 * what.read, 200);
    EXPECT_NEAR(seen[1], 100 * what.update, 200);
    EXPECT_NEAR(seen[2], 100 * what.insert, 200);
    EXPECT_NEAR(seen[3], 100 * what.scan, 200);
  }
}

TEST(workload, values_tell_their_keys_apart) {
  const auto value = make_value<text_key, text_value>("one", 3);
  EXPECT_TRUE((belongs_to<text_key, text_value>(value, "one")));
  EXPECT_FALSE((belongs_to<text_key, text_value>(value, "two")));
  EXPECT_NE(value, (make_value<text_key, text_value>("one", 4)));
}

}  // namespace
}  // namespace apps
