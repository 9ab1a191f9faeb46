// SPDX-License-Identifier: Apache-2.0
//
// Interleaved measurement: what is compared is measured in turns, so that a change of the host's
// mood falls on both, and each turn gives one ratio.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// The middle value; the mean of the two middle ones of an even number. Requires: not empty.
double median(std::vector<double> values);
double minimum(const std::vector<double>& values);

/// How much to measure.
struct effort {
  int pairs = 31;
  bool quick = false;  // a trial run: figures that are not worth quoting

  /// The least number of pairs a quoted figure rests on.
  static constexpr int pairs_min = 11;
  int rounds() const { return quick ? 3 : pairs; }
};

/// Something measured in every round: one batch, in nanoseconds an operation.
struct contender {
  std::string name;
  std::function<double()> batch;
};

/// One figure a round for each contender, by name; index i of all vectors is round i.
using samples = std::map<std::string, std::vector<double>, std::less<>>;

/// Runs every contender once a round, every second round in reverse order.
samples interleave(int rounds, const std::vector<contender>& contenders);

/// Two contenders compared round by round.
struct comparison {
  std::vector<double> ratios;
  double ratio_median = 0;
  double ratio_min = 0;
  double ours_ns = 0;  // medians
  double peer_ns = 0;
};
comparison compare(const samples& all, std::string_view ours, std::string_view peer);

}  // namespace bench
