// SPDX-License-Identifier: Apache-2.0
// Proof that some fibers wait for each other for ever, whatever else runs in the job.
#pragma once

#include <cstdint>
#include <vector>

#include "observe/hang_report.hpp"

namespace sojourn::detail {

/// Fibers in a circle. Each of them waits, without a time limit, for something that only the next
/// one can do: end, or unlock a mutex. Only waits that are in both reports count: they lasted from
/// `before` to `now`, and so all held at one moment, although ranks tell of their waits one after
/// the other. Empty when there is no circle. Requires: all of `before` was told before anything of
/// `now`.
std::vector<told_fiber> circle_of_waits(const hang_view& before, const hang_view& now);

}  // namespace sojourn::detail
