// SPDX-License-Identifier: Apache-2.0
// Two ways to do the same work, measured in turns: which one is better?
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/measure.hpp"

namespace apps {

/// The middle one; between the two middle ones when their number is even. Requires: not empty.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Rounds of two runs, one each way, next to each other in time: what slows one down slows down the
/// other too, so their ratio in a round says more than the figures themselves.
class race {
 public:
  void add(const figures& first, const figures& second) {
    first_.push_back(first);
    second_.push_back(second);
  }

  std::size_t rounds() const { return first_.size(); }
  /// Each figure's median. Requires: rounds() > 0.
  figures first() const { return medians(first_); }
  figures second() const { return medians(second_); }

  /// Median over the rounds of the second's operations a second over the first's.
  double ratio() const { return median(ratios()); }

  enum class winner { first, second, tie };
  /// A tie unless they differ by 3% or more, in no more than every fifth round the other was
  /// faster, and the medians of their figures say the same.
  winner who() const {
    const double r = ratio();
    if ((first().per_second() < second().per_second()) != (r > 1)) return winner::tie;
    const auto all = ratios();
    const auto against = static_cast<std::size_t>(
        std::ranges::count_if(all, [r](double x) { return r > 1 ? x <= 1 : x >= 1; }));
    if (against * 5 > all.size() || (r < 1.03 && r > 1 / 1.03)) return winner::tie;
    return r > 1 ? winner::second : winner::first;
  }

 private:
  std::vector<double> ratios() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < first_.size(); ++i) {
      all.push_back(second_[i].per_second() / first_[i].per_second());
    }
    return all;
  }

  static figures medians(const std::vector<figures>& runs) {
    const auto of = [&](auto figure) {
      std::vector<double> values;
      for (const figures& f : runs) values.push_back(static_cast<double>(f.*figure));
      return median(std::move(values));
    };
    const auto count = [&](auto figure) { return static_cast<std::uint64_t>(of(figure)); };
    figures f;
    f.operations = count(&figures::operations);
    f.seconds = of(&figures::seconds);
    f.messages = count(&figures::messages);
    f.bytes = count(&figures::bytes);
    f.migrations = count(&figures::migrations);
    f.hits = count(&figures::hits);
    f.misses = count(&figures::misses);
    f.p50_us = of(&figures::p50_us);
    f.p99_us = of(&figures::p99_us);
    return f;
  }

  std::vector<figures> first_;
  std::vector<figures> second_;
};

}  // namespace apps
