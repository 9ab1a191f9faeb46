// SPDX-License-Identifier: Apache-2.0
// What both forms of Water over Sojourn share.
#pragma once

#include <sojourn/sojourn.hpp>

#include <functional>
#include <span>
#include <vector>

#include "common/arrivals.hpp"
#include "common/fault.hpp"
#include "water/forms.hpp"

namespace apps::water {

/// What a rank has of the system.
struct simulation {
  explicit simulation(const settings& s)
      : chosen(s),
        space(s),
        near(s, sojourn::rank_count(), sojourn::rank_me()),
        moving(s, near.first, near.own) {}

  const settings chosen;
  const box space;
  const neighbourhood near;
  motion moving;
};

/// All steps: step(energies) does one, and adds what this rank's molecules and pairs contribute.
/// `positions`: of this rank's molecules, when all is done.
template <class Step>
result run_steps(simulation& sim, const std::function<std::vector<sites>()>& positions, Step step) {
  const settings& s = sim.chosen;
  energies last;
  const auto steps = [&](std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      energies mine;
      step(mine);
      last = sojourn::reduce(mine, std::plus<>{});
    }
  };
  split_meter meter;
  sojourn::barrier();
  steps(s.warm_up);
  meter.start();
  steps(s.steps);
  meter.stop();

  const reference wanted = compute_alone(s, sojourn::rank_count(), sojourn::rank_me());
  result r;
  r.fault = first_fault(difference(s, last, positions(), wanted));
  r.last = last;
  r.seconds = meter.seconds();
  r.split = meter.split(wanted.seconds);
  r.spent = meter.spent();
  r.costs = meter.costs();
  return r;
}

/// Forces that other ranks' pairs exert on this rank's molecules, each by a message of its own.
/// How many there will be is not known beforehand: who has sent its last one says how many.
class force_counter {
 public:
  force_counter() : sent_(static_cast<std::size_t>(sojourn::rank_count())) { here = this; }

  void sent(int rank) { ++sent_[static_cast<std::size_t>(rank)]; }
  void arrived() { forces_.arrived(); }

  /// Suspends until all other ranks have sent their last, and all of it is here.
  void wait() {
    for (int r = 0; r < sojourn::rank_count(); ++r) {
      if (r == sojourn::rank_me()) continue;
      sojourn::rpc_ff(
          r,
          [](std::uint64_t number) {
            here->expected_ += number;
            here->last_ones_.arrived();
          },
          sent_[static_cast<std::size_t>(r)]);
    }
    last_ones_.wait(sent_.size() - 1);
    forces_.wait(std::exchange(expected_, 0));
    std::ranges::fill(sent_, 0);
  }

  static inline force_counter* here;

 private:
  std::vector<std::uint64_t> sent_;
  std::uint64_t expected_ = 0;
  arrivals last_ones_;
  arrivals forces_;
};

}  // namespace apps::water
