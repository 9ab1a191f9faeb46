// SPDX-License-Identifier: Apache-2.0
// Which rank gets which core. It reads what the kernel says of this host and starts nothing.
#pragma once

#include <string_view>
#include <vector>

namespace sojourn::detail {

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
