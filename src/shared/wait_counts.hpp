// SPDX-License-Identifier: Apache-2.0
// Counts for what the fibers of a rank wait in shared memory, whether others could run meanwhile,
// and for how long none could. A number names what a fiber waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <unordered_map>

#include "sojourn/shared/counters.hpp"

namespace sojourn::detail::pages {

class wait_counts {
 public:
  enum class kind : std::uint8_t { page, lock, barrier, event };

  wait_counts(sojourn::shared::counters& to, std::pmr::memory_resource* memory)
      : counts_(to), waiting_for_(memory) {}

  /// The running fiber is about to wait. `others_ready`: another one can run at once.
  void begin(kind k, std::uint64_t what, bool others_ready, std::uint64_t now);
  /// The fiber has what it waited for, and goes on.
  void over(kind k, std::uint64_t what);
  /// Fibers that wait for something of this kind become ready.
  void end(kind k, std::uint64_t now);
  /// Leaves out `ns` nanoseconds, in which no fiber was ready, because they are counted elsewhere.
  void pause(std::uint64_t ns) {
    if (idle_) idle_since_ += ns;
  }

 private:
  void classify(std::uint64_t what, bool others_ready);

  sojourn::shared::counters& counts_;
  std::pmr::unordered_map<std::uint64_t, std::size_t>
      waiting_for_;  ///< How many fibers wait for it.
  std::size_t waiting_ = 0;
  bool is_alone_ = false;    ///< Only one fiber waits. It is not in the table, to save the memory.
  std::uint64_t alone_ = 0;  ///< What that fiber waits for.
  std::size_t at_barrier_ = 0;
  bool idle_ = false;
  std::uint64_t idle_since_ = 0;
};

}  // namespace sojourn::detail::pages
