// SPDX-License-Identifier: Apache-2.0
// The ranks of one host as they find each other in the job's segment (transport/neighbours.hpp).
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "job/segment.hpp"
#include "transport/neighbours.hpp"

namespace sojourn::detail {

class segment_neighbours final : public neighbours {
 public:
  /// The segment stays mapped as long as this is used.
  explicit segment_neighbours(job_segment& segment) : segment_(segment) {}

  bool include(int rank) const override { return segment_.is_here(rank); }
  counts_page& counts_of(int rank) const override { return segment_.counts_of(rank); }
  const std::atomic<std::uint32_t>& losses() const override { return segment_.ranks_lost; }
  bool lost(int rank) const override { return segment_.ranks[rank].lost.load() != 0; }
  bool interrupt(int rank) const override {
    const watch_area watch = segment_.watch();
    const rank_block& block = segment_.ranks[rank];
    if (watch.of(rank).interruptible.load() == 0 || watch.is_asleep(rank) ||
        block.state.load() != rank_state::attached || block.lost.load() != 0)
      return false;
    return syscall(SYS_tgkill, block.pid.load(), watch.of(rank).thread.load(), SIGURG) == 0;
  }
  bool nothing_can_happen() const override { return segment_.watch().nothing_can_happen(); }

 private:
  job_segment& segment_;
};

}  // namespace sojourn::detail
