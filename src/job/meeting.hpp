// SPDX-License-Identifier: Apache-2.0
// How the ranks of a job meet before they run: each tells of itself in the job's memory and waits
// for the others, and all see for themselves that they can be ranks of one job.
#pragma once

#include "job/segment.hpp"

namespace sojourn::detail {

/// To be called before this rank arrives.
void introduce_myself(rank_block& mine);

/// This rank has attached or could not: the last one wakes those that wait, or rings for their
/// agent, which waits for those of other hosts.
void arrive(job_segment& segment, void (*ring)());

/// Waits until every rank has attached, or has found that it cannot: then this process ends.
/// Throws sojourn::error where the ranks differ in what must be alike.
void meet_others(job_segment& segment, void (*ring)());

/// Ranks that were started as one program must run the same one; all must use the same messages.
/// Throws sojourn::error otherwise.
void compare_ranks(const job_segment& segment);

}  // namespace sojourn::detail
