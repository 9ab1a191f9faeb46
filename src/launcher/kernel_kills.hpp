// SPDX-License-Identifier: Apache-2.0
// Whom the kernel has killed for lack of memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace sojourn::detail {

/// Processes of this process's control group that the kernel has killed because the group's memory
/// was used up; 0 where that is not counted.
std::uint64_t kills_for_memory_of_group();

/// True when the kernel's log, where it may be read, says that it killed `pid` for lack of memory.
bool log_says_killed_for_memory(pid_t pid);

}  // namespace sojourn::detail
