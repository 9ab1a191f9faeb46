// SPDX-License-Identifier: Apache-2.0
// A job of one rank without a launcher: the rank does itself what the launcher would do when the
// job hangs, or a report is asked for.
#pragma once

#include <atomic>

#include "job/segment.hpp"

namespace sojourn::detail {

/// The first thread waits here for the worker's end, and for requests. `its_bell`: rings for both.
void watch_alone(job_segment& segment, int its_bell, const std::atomic<bool>& ended);

/// Nothing can happen any more. On the worker.
[[noreturn]] void end_alone_in_deadlock(job_segment& segment);

}  // namespace sojourn::detail
