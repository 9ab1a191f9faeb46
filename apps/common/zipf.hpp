// SPDX-License-Identifier: Apache-2.0
// Zipf-distributed indices, as the YCSB benchmark draws them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/random.hpp"

namespace apps {

/// Draws 0, 1, … items-1, index i with a probability proportional to 1/(i+1)^theta.
/// Source: Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD 1994).
class zipf {
 public:
  /// Takes time proportional to `items`. Requires: items > 0, 0 < theta < 1.
  explicit zipf(std::uint64_t items, double theta = 0.99) : items_(items), theta_(theta) {
    for (std::uint64_t i = 1; i <= items; ++i) zeta_ += std::pow(static_cast<double>(i), -theta);
    const double zeta_two = 1 + std::pow(2.0, -theta);
    alpha_ = 1 / (1 - theta);
    eta_ = (1 - std::pow(2.0 / static_cast<double>(items), 1 - theta)) / (1 - zeta_two / zeta_);
  }

  /// Index 0 is the most frequent.
  std::uint64_t draw(random_source& random) const {
    const double u = random.fraction();
    const double uz = u * zeta_;
    if (uz < 1) return 0;
    if (uz < 1 + std::pow(0.5, theta_)) return std::min<std::uint64_t>(1, items_ - 1);
    const double scaled = static_cast<double>(items_) * std::pow(eta_ * u - eta_ + 1, alpha_);
    return std::min(static_cast<std::uint64_t>(scaled), items_ - 1);
  }

  /// The same with the frequent indices scattered over the whole range, as YCSB does it.
  std::uint64_t draw_scrambled(random_source& random) const { return mix64(draw(random)) % items_; }

  std::uint64_t items() const { return items_; }

 private:
  std::uint64_t items_;
  double theta_;
  double zeta_ = 0;
  double alpha_ = 0;
  double eta_ = 0;
};

}  // namespace apps
