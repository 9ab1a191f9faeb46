// SPDX-License-Identifier: Apache-2.0
// Which ranks may exchange stacks: those of one program, with equal libraries and thread-local
// addresses. Ranks compare fingerprints when the job starts.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// As it was at the first call, when the job starts: libraries that are loaded later (reports load
/// one for debug information) change nothing. Requires: that call is on the worker thread.
std::uint64_t fingerprint();

}  // namespace sojourn::detail
