// SPDX-License-Identifier: Apache-2.0
// The counting network in shared memory, as one would write it for threads: a balancer is a bit
// under a mutex. Each has a page for itself, so that no two of them go from rank to rank together.
#pragma once

#include <sojourn/shared.hpp>
#include <sojourn/sojourn.hpp>

#include <array>
#include <cstdint>

#include "counting_network/wiring.hpp"

namespace apps {

/// A plain value: it travels, and every copy means the same network.
class shared_network {
 public:
  /// Pages that a request visits: balancers, and the counter at the end.
  static constexpr std::uint64_t visits = wiring::stage_count + 1;

  shared_network() = default;
  /// One rank calls it and hands the network to the others. May suspend.
  static shared_network create();
  /// Requires: nobody uses it any more.
  void destroy() const;

  /// The next number; requests enter at one of eight wires. Suspends.
  std::uint64_t take(int wire) const;
  /// How many numbers each counter handed out, while nobody draws. Suspends.
  std::array<std::uint64_t, wiring::width> counts() const;

 private:
  struct alignas(4096) shared_balancer {
    sojourn::shared::mutex mutex;
    bool bottom_next;
  };
  struct alignas(4096) shared_counter {
    sojourn::shared::mutex mutex;
    std::uint64_t taken;
  };
  struct pages {
    std::array<std::array<shared_balancer, wiring::per_stage>, wiring::stage_count> balancers;
    std::array<shared_counter, wiring::width> counters;
  };

  sojourn::shared::pointer<pages> pages_;
};

}  // namespace apps
