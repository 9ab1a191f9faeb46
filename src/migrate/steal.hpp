// SPDX-License-Identifier: Apache-2.0
// Work stealing at forks: a rank that has nothing to do says so where forks of other ranks look;
// the next fork there gives it the oldest stretch of its stack that may leave: what the caller of
// an older fork has still to do. Lazy task creation: nothing is queued, and who gives nothing pays
// one load and one branch a fork. (CUT, Stealing; Mohr, Kranz and Halstead 1991, whose thieves,
// too, take the oldest continuation.) When nothing older may leave, the new child does.
//
// Hunger is a bit in the page of each rank that has told that it forks: shown once and taken back
// when there is work again, so that nobody asks in vain, and nobody is woken to say no.
#pragma once

#include "sojourn/counters.hpp"

namespace sojourn::detail {

/// Reads SOJOURN_STEAL. `page_of`: the page of any rank of the job. Throws sojourn::error.
/// Requires: programs are attached.
void attach_steal(counts_page& (*page_of)(int rank));

}  // namespace sojourn::detail
