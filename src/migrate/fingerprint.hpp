// SPDX-License-Identifier: Apache-2.0
// Which ranks may exchange stacks: those of one program, with equal libraries and thread-local
// addresses; and which may exchange messages at all. Ranks compare fingerprints when the job
// starts.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// Computed at the first call, when the job starts, so that libraries which are loaded later
/// (reports load one for debug information) change nothing. Requires: that call is on the worker
/// thread.
std::uint64_t fingerprint();

/// Fingerprint of what messages between programs consist of: numbers of handlers, and sizes of what
/// they hold. Equal in all ranks of a job.
std::uint64_t wire_fingerprint();

}  // namespace sojourn::detail
