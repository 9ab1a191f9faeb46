// SPDX-License-Identifier: Apache-2.0
#include "driver/measure.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace bench {

double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double minimum(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) throw std::invalid_argument("quantile of nothing");
  std::sort(values.begin(), values.end());
  const double at = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  if (below + 1 == values.size()) return values.back();
  return std::lerp(values[below], values[below + 1], at - static_cast<double>(below));
}

samples interleave(int rounds, const std::vector<contender>& contenders) {
  samples all;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      const contender& next = contenders[round % 2 == 0 ? turn : contenders.size() - 1 - turn];
      all[next.name].push_back(next.batch());
    }
  }
  return all;
}

void comparison::take_ratios(std::vector<double> all) {
  ratios = std::move(all);
  ratio_median = median(ratios);
  ratio_q1 = quantile(ratios, 0.25);
  ratio_q3 = quantile(ratios, 0.75);
  ratio_min = minimum(ratios);
}

comparison compare(const samples& all, std::string_view ours, std::string_view peer) {
  const std::vector<double>& our_batches = all.find(ours)->second;
  const std::vector<double>& peer_batches = all.find(peer)->second;
  std::vector<double> ratios;
  for (std::size_t round = 0; round < our_batches.size(); ++round)
    ratios.push_back(our_batches[round] / peer_batches[round]);
  comparison result;
  result.take_ratios(std::move(ratios));
  result.ours_ns = median(our_batches);
  result.peer_ns = median(peer_batches);
  return result;
}

std::string quickest(const samples& all, const std::vector<std::string>& names) {
  return *std::min_element(names.begin(), names.end(),
                           [&](const std::string& a, const std::string& b) {
                             return median(all.at(a)) < median(all.at(b));
                           });
}

comparison geometric_mean(const std::vector<comparison>& programs) {
  comparison all;
  std::vector<double> means;
  for (std::size_t round = 0; round < programs.front().ratios.size(); ++round) {
    double sum = 0;
    for (const comparison& each : programs) sum += std::log(each.ratios[round]);
    means.push_back(std::exp(sum / static_cast<double>(programs.size())));
  }
  all.take_ratios(std::move(means));
  for (const comparison& each : programs) {
    all.ours_ns += each.ours_ns;
    all.peer_ns += each.peer_ns;
  }
  return all;
}

}  // namespace bench
