// SPDX-License-Identifier: Apache-2.0
// A rank's part in explaining hangs: publishes its sleeps, notices when nothing can happen in the
// job any more, and writes reports of what its fibers wait for when it is asked.
#pragma once

#include "observe/wait_report.hpp"

namespace sojourn::detail {

struct piece;

/// What the floor above knows and does.
struct watch_hooks {
  bool has_launcher;
  /// The main fiber when its body has returned and it waits for the rank's other fibers, or null.
  const piece* (*parked_main)();
  /// Nothing can happen in this job any more: tells the process that explains it. May not return.
  void (*deadlocked)();
  /// A signal asks for a report. Async-signal-safe.
  void (*asked)();
  /// Of shared::barrier(): whether a suspended fiber takes part (scheduler's stack only), and how
  /// many do (async-signal-safe).
  bool (*takes_part)(const piece* p);
  barrier_part (*barrier)();
};

/// Requires: on the worker thread, with the dispatcher attached.
void attach_watch(const watch_area& area, const watch_hooks& hooks);

/// Writes what the fibers of this rank wait for; `brief`: without their stacks; then only fibers
/// that hold mutexes are put in place. Scheduler's stack only.
void write_report(rank_report& report, bool brief);

}  // namespace sojourn::detail
