// SPDX-License-Identifier: Apache-2.0
#include "driver/measure.hpp"

#include <algorithm>
#include <stdexcept>

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

comparison compare(const samples& all, std::string_view ours, std::string_view peer) {
  const std::vector<double>& our_batches = all.find(ours)->second;
  const std::vector<double>& peer_batches = all.find(peer)->second;
  comparison result;
  for (std::size_t round = 0; round < our_batches.size(); ++round)
    result.ratios.push_back(our_batches[round] / peer_batches[round]);
  result.ratio_median = median(result.ratios);
  result.ratio_min = minimum(result.ratios);
  result.ours_ns = median(our_batches);
  result.peer_ns = median(peer_batches);
  return result;
}

}  // namespace bench
