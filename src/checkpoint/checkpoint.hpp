// SPDX-License-Identifier: Apache-2.0
// What the start of a rank needs of checkpoints; the rest is sojourn/checkpoint.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/files.hpp"

namespace sojourn::detail {

/// What floors beside this one do for checkpoints. Filled in once, before main begins. (job)
struct checkpoint_hooks {
  /// What shared memory this rank has, which no file holds; null when it has none. (shared)
  const char* (*shared_memory)() = []() -> const char* { return nullptr; };
};
extern checkpoint_hooks on_checkpoint;

/// `secret`: the job's stack canary, which checkpoints record.
void attach_checkpoint(std::uint64_t secret);

/// Brings back what this rank has saved; its fibers stand still until let_restored_go. Requires:
/// all is attached, and nothing has run. Throws sojourn::error: which file, what is wrong, what to
/// do.
void restore_rank(const std::string& path, const checkpoint_set& set);

/// Lets the restored fibers go on, at main's first barrier or at its end. A second call does
/// nothing.
void let_restored_go();

}  // namespace sojourn::detail
