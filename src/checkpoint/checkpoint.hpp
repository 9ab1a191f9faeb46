// SPDX-License-Identifier: Apache-2.0
// What the start of a rank needs of checkpoints; the rest is sojourn/jobs/checkpoint.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/files.hpp"
#include "checkpoint/saved_parts.hpp"

namespace sojourn::detail {

/// What shared memory, a floor beside this one, does for checkpoints.
struct shared_memory_part : saved_part {
  /// Why shared memory cannot be saved now, or null.
  const char* (*unsaved)();
  /// Called by main on all ranks, while other fibers stand still: brings what this rank saves here.
  /// Suspends.
  void (*gather)();
};

/// What checkpoints record of the job.
struct recorded_job {
  std::uint64_t secret;  ///< The stack canary.
  std::string hosts;     ///< As --hosts takes them.
  bool over_ucx;
  bool encrypted;
};
void attach_checkpoint(recorded_job recorded, const shared_memory_part& shared_memory);

/// Brings back what this rank has saved; its fibers stand still until let_restored_go. Requires:
/// all is attached, and nothing has run. Throws sojourn::error: which file, what is wrong, what to
/// do.
void restore_rank(const std::string& path, const checkpoint_set& set);

/// Lets the restored fibers go on, at main's first barrier or at its end. A second call does
/// nothing.
void let_restored_go();

}  // namespace sojourn::detail
