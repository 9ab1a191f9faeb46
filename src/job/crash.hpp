// SPDX-License-Identifier: Apache-2.0
// Last words: what a rank that dies of a signal or an uncaught exception leaves for the launcher.
#pragma once

#include "job/segment.hpp"

namespace sojourn::detail {

/// From now on a death of this process is written to this rank's block or, without a launcher
/// (`alone`), to stderr. Requires: called on the worker thread, which gets a signal stack.
void attach_crash_report(job_segment& segment, int rank, bool alone);

/// The calling thread, the worker, is about to end: signals from outside are no longer passed on to
/// it.
void worker_ends();

}  // namespace sojourn::detail
