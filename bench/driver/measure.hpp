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
/// The value below which this part of the values lies, between two of them in proportion: the
/// quartiles are those of 0.25 and 0.75. Requires: not empty.
double quantile(std::vector<double> values, double part);

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
  double ratio_q1 = 0;  // quartiles
  double ratio_q3 = 0;
  double ratio_min = 0;
  double ours_ns = 0;  // medians
  double peer_ns = 0;

  /// Takes other ratios in place of those that are there, and their median, quartiles and minimum.
  void take_ratios(std::vector<double> all);
};
comparison compare(const samples& all, std::string_view ours, std::string_view peer);
/// Of each round, the geometric mean over the programs of one contender over another. Requires: all
/// have as many rounds.
comparison geometric_mean(const std::vector<comparison>& programs);

/// The contender with the least median of these: of a peer's settings its best. Requires: all of
/// them are in `all`.
std::string quickest(const samples& all, const std::vector<std::string>& names);

}  // namespace bench
