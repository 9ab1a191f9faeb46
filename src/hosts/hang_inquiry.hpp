// SPDX-License-Identifier: Apache-2.0
// What the agents of a job tell of ranks that do not go on, put together to what holds for the
// whole job: whether all hosts stand still, and what all ranks wait for.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "observe/hang_view.hpp"

namespace sojourn::detail {

class hang_inquiry {
 public:
  using clock = std::chrono::steady_clock;
  using time = clock::time_point;

  /// How the ranks of a host are when its agent has not told: absent before they have joined the
  /// job, then silent, and at last finished, when nothing more is to come of that host.
  using otherwise = std::function<rank_condition(std::size_t host)>;

  /// `ranks`: of each host.
  hang_inquiry(std::vector<int> ranks, otherwise when_untold);

  /// A host stands still, and some of its ranks wait, or each computes for itself. True when all
  /// hosts stand still now, and some ranks wait: once, until a host goes on.
  bool hear_standstill(std::size_t host, bool some_wait);
  void hear_going_on(std::size_t host);

  /// Begins to ask why the job does not go on. False when that is being asked already: then a proof
  /// takes the place of its reason.
  bool begin(const std::string& why, bool proven, time now);
  void hear_waits(std::size_t host, std::vector<rank_view> ranks);
  /// It has begun, and all hosts have answered that will.
  bool is_complete() const;
  /// When it is to be ended with the answers that have come.
  std::optional<time> deadline() const { return deadline_; }
  /// Requires: it has begun.
  hang_view end();

 private:
  struct of_host {
    int ranks;
    std::optional<bool> stands_still = {};  ///< Whether some of its ranks wait, then.
    std::vector<rank_view> waits = {};
  };
  bool has_finished(std::size_t host) const {
    return when_untold_(host) == rank_condition::finished;
  }

  std::vector<of_host> hosts_;
  otherwise when_untold_;
  int ranks_in_all_ = 0;
  bool standstill_told_ = false;
  std::optional<hang_view> asked_;
  std::optional<time> deadline_;
};

}  // namespace sojourn::detail
