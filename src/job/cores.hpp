// SPDX-License-Identifier: Apache-2.0
// Which cores a job may use, by what the kernel says of this host and by SOJOURN_CORES.
#pragma once

#include <string_view>
#include <vector>

namespace sojourn::detail {

/// Far above the number of cores that the kernel supports; ends searches.
inline constexpr int cores_max = 1 << 16;

/// The cores this process may run on, ascending. Never empty.
std::vector<int> affinity_cores();

/// What the control group's CPU quota amounts to, in whole cores, rounded up; INT_MAX without one.
int quota_cores();

/// What SOJOURN_CORES says, or `allowed`. Throws an error when that is not a number of cores.
int cores_to_count_on(int allowed);

/// Reads "max 100000" or "150000 100000" (the control group's cpu.max): whole cores, rounded up.
/// INT_MAX when there is no limit or the text is not understood.
int cores_of_quota(std::string_view text);

}  // namespace sojourn::detail
