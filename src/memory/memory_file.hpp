// SPDX-License-Identifier: Apache-2.0
// Memory that several processes can map: a file without a name, gone with the last of them.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// Returns its descriptor, close-on-exec. `name` shows in /proc/PID/maps. The system provides a
/// page when it is first touched. Throws sojourn::error with the reason and the remedy.
int make_memory_file(const char* name, std::uint64_t bytes);

}  // namespace sojourn::detail
