// SPDX-License-Identifier: Apache-2.0
// Counts why fibers of a rank wait for shared memory, whether others could run meanwhile, and for
// how long none could. What a fiber waits for is named by a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <unordered_map>

#include "sojourn/shared_counters.hpp"

namespace sojourn::detail::pages {

class wait_counts {
 public:
  enum class kind : std::uint8_t { page, lock, barrier, event };

  wait_counts(sojourn::shared::counters& to, std::pmr::memory_resource* memory)
      : counts_(to), waiting_for_(memory) {}

  /// The running fiber is about to wait. `others_ready`: another one can run at once.
  void begin(kind k, std::uint64_t what, bool others_ready, std::uint64_t now);
  /// It goes on.
  void over(kind k, std::uint64_t what);
  /// Fibers that wait for something of this kind become ready.
  void end(kind k, std::uint64_t now);
  /// So much of the time in which no fiber was ready is counted elsewhere.
  void pause(std::uint64_t ns) {
    if (idle_) idle_since_ += ns;
  }

 private:
  void classify(std::uint64_t what, bool others_ready);

  sojourn::shared::counters& counts_;
  std::pmr::unordered_map<std::uint64_t, std::size_t> waiting_for_;  ///< How many fibers.
  std::size_t waiting_ = 0;
  bool is_alone_ = false;    ///< One fiber waits, and is not in the table, which would cost memory.
  std::uint64_t alone_ = 0;  ///< What for.
  std::size_t at_barrier_ = 0;
  bool idle_ = false;
  std::uint64_t idle_since_ = 0;
};

}  // namespace sojourn::detail::pages
