// SPDX-License-Identifier: Apache-2.0
// Who opened a mark, read from outside: a report's way from a piece to the frames it left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sojourn::detail {

/// Return address of the call under the mark at `mark` in the process `pid`, or 0 when it cannot be
/// read: the process has gone, or the mark's frames are not in place. Reads memory by system calls
/// alone: safe in signal handlers, for any address.
std::uint64_t caller_of_mark(pid_t pid, std::uint64_t mark);

}  // namespace sojourn::detail
