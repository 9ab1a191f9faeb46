// SPDX-License-Identifier: Apache-2.0
// Work stealing at forks: a rank that has nothing to do sets a flag that the forks of other ranks
// look at. The next fork there gives it the oldest stretch of its stack that may leave: what the
// caller of an older fork still has to do. When no such stretch may leave, the new child does.
// Nothing is queued, and a fork that gives nothing away pays one load and one branch. (Lazy task
// creation: Mohr, Kranz and Halstead 1991, whose thieves also take the oldest continuation.
// Cutting: docs/internals/cutting.md.)
//
// A rank without work is *hungry*. It sets its bit in the page of counts of each rank that has told
// that it forks, and clears the bits when it has work again. So nobody asks in vain, and nobody is
// woken to say no.
//
// Only ranks of one host see that page (transport/neighbours.hpp). With SOJOURN_STEAL=hosts, a
// hungry rank also tells ranks of other hosts, by one message each. Such a rank remembers it until
// it has given something, even if the hungry rank has work again meanwhile: if it were told of that
// as well, ranks that have nothing to do would wake each other for ever. Ranks of the same host
// come first.
#pragma once

namespace sojourn::detail {

/// Reads SOJOURN_STEAL. Throws sojourn::error. Requires: programs and neighbours are attached.
void attach_steal();

}  // namespace sojourn::detail
