// SPDX-License-Identifier: Apache-2.0
// How long all ranks together take for something, and what they count meanwhile.
#pragma once

#include <sojourn/sojourn.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>

namespace apps {

/// Collective: made by every rank before, and stopped by every rank behind what is measured. Both
/// suspend.
class stopwatch {
 public:
  stopwatch() {
    sojourn::barrier();
    before_ = sojourn::counters_now();
    start_ns_ = sojourn::now_ns();
  }
  /// `seconds` are those of the rank that took longest, and `spent` is of all ranks together: the
  /// same on every rank.
  void stop(double& seconds, sojourn::counters& spent) const {
    const double mine = static_cast<double>(sojourn::now_ns() - start_ns_) * 1e-9;
    spent = sojourn::reduce(sojourn::counters_now() - before_, std::plus<>{});
    seconds = sojourn::reduce(mine, [](double a, double b) { return std::max(a, b); });
  }

 private:
  sojourn::counters before_;
  std::uint64_t start_ns_;
};

}  // namespace apps
