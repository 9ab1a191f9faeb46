// SPDX-License-Identifier: Apache-2.0
// Finds the caller of a mark in another process's memory, so that a report can tell to which frames
// a piece returns.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sojourn::detail {

/// Return address of the call under the mark at `mark` in the process `pid`, or 0 when it cannot be
/// read: the process has gone, or the mark's frames are not in place. Reads memory by system calls
/// alone: safe in signal handlers, for any address.
std::uint64_t caller_of_mark(pid_t pid, std::uint64_t mark);

}  // namespace sojourn::detail
