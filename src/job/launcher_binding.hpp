// SPDX-License-Identifier: Apache-2.0
// Which cores a job may use and which rank gets which. It reads what the kernel says of this host
// and starts nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sojourn::detail {

/// The cores this process may run on, ascending. Never empty.
std::vector<int> affinity_cores();

/// What the control group's CPU quota amounts to, in whole cores, rounded up; INT_MAX without one.
int quota_cores();

/// What SOJOURN_CORES says, or `allowed`. Throws an error when that is no number of cores.
int cores_to_count_on(int allowed);

/// Reads "max 100000" or "150000 100000" (the control group's cpu.max): whole cores, rounded up.
/// INT_MAX when there is no limit or the text is not understood.
int cores_of_quota(std::string_view text);

/// Reads a list such as "0-2,8". Empty when the text is not understood.
std::vector<int> parse_core_list(std::string_view text);

/// The cores in the order in which ranks take them: one hardware thread of each physical core
/// first, then the others. `siblings_of` gives the hardware threads of a core's physical core.
std::vector<int> binding_order(const std::vector<int>& cores,
                               std::vector<int> (*siblings_of)(int core));

/// The hardware threads that share `core`'s physical core, by what the kernel says; {core} when it
/// does not say.
std::vector<int> hardware_threads_beside(int core);

}  // namespace sojourn::detail
