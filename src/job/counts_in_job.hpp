// SPDX-License-Identifier: Apache-2.0
// A rank's counts lie in the job's memory, where the launcher finds them whatever ends the rank.
#pragma once

namespace sojourn::detail {

/// From here on this rank counts there. A forked child goes on with counts of its own. Requires:
/// `job` says which rank this is. Throws sojourn::error.
void count_in_job(int segment_fd);

}  // namespace sojourn::detail
