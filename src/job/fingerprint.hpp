// SPDX-License-Identifier: Apache-2.0
// Which ranks may exchange stacks: those of one program, with equal libraries and thread-local
// addresses. Ranks compare fingerprints when the job starts.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// Requires: called on the worker thread.
std::uint64_t fingerprint();

}  // namespace sojourn::detail
