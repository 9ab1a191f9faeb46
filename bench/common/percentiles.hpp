// SPDX-License-Identifier: Apache-2.0
//
// Percentiles of many latencies. Knows nothing of Sojourn, so that the peers can share it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

/// The 50th, 99th and 99.9th: the least value that so many are not above. Of none, three times 0.
inline std::vector<double> percentiles(std::vector<double> values) {
  if (values.empty()) return {0, 0, 0};
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const auto index = static_cast<std::size_t>(part * static_cast<double>(values.size()));
    return values[std::min(index, values.size() - 1)];
  };
  return {at(0.5), at(0.99), at(0.999)};
}

}  // namespace bench
