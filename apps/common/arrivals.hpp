// SPDX-License-Identifier: Apache-2.0
// Waiting for a number of messages.
#pragma once

#include <sojourn/sojourn.hpp>

#include <cstdint>

namespace apps {

/// Counts one-way calls that come to this rank, for its main fiber to wait until so many have.
/// Those beyond that count for the next time.
class arrivals {
 public:
  /// Never suspends: called by the handlers.
  void arrived() {
    if (++count_ == awaited_) enough_.release();
  }
  /// Suspends until `number` have come since the last wait.
  void wait(std::uint64_t number) {
    if (count_ < number) {
      awaited_ = number;
      enough_.acquire();
      awaited_ = nobody;
    }
    count_ -= number;
  }

 private:
  static constexpr std::uint64_t nobody = 0;

  std::uint64_t count_ = 0;
  std::uint64_t awaited_ = nobody;
  sojourn::semaphore enough_{0};
};

}  // namespace apps
