// SPDX-License-Identifier: Apache-2.0
// One rank's part of a job.
#pragma once

namespace sojourn::detail {

/// The exit status of `sojourn run` when a job cannot start; of a rank, too.
inline constexpr int status_not_started = 2;

/// Joins the job, or makes one of a single rank; runs body(context) in the main fiber; leaves the
/// job. Returns the exit status.
int run_rank(int (*body)(void*), void* context);

}  // namespace sojourn::detail
