// SPDX-License-Identifier: Apache-2.0
// What the start of a rank needs of checkpoints; the rest is sojourn/checkpoint.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "base/saved_file.hpp"
#include "checkpoint/files.hpp"

namespace sojourn::detail {

/// What shared memory, a floor beside this one, does for checkpoints. Filled in once, before main
/// begins. (job)
struct shared_memory_hooks {
  /// Why it cannot be saved now, or null.
  const char* (*unsaved)() = []() -> const char* { return nullptr; };
  /// Called by main on all ranks, while other fibers stand still: brings what this rank saves here.
  /// Suspends.
  void (*gather)() = [] {};
  void (*save)(file_writer& to) = [](file_writer&) {};
  void (*load)(file_reader& from) = [](file_reader&) {};
};
struct checkpoint_hooks {
  shared_memory_hooks shared;
};
extern checkpoint_hooks on_checkpoint;

/// What checkpoints record of the job.
struct recorded_job {
  std::uint64_t secret;  ///< The stack canary.
  std::string hosts;     ///< As --hosts takes them.
  bool over_ucx;
  bool encrypted;
};
void attach_checkpoint(recorded_job recorded);

/// Brings back what this rank has saved; its fibers stand still until let_restored_go. Requires:
/// all is attached, and nothing has run. Throws sojourn::error: which file, what is wrong, what to
/// do.
void restore_rank(const std::string& path, const checkpoint_set& set);

/// Lets the restored fibers go on, at main's first barrier or at its end. A second call does
/// nothing.
void let_restored_go();

}  // namespace sojourn::detail
