// SPDX-License-Identifier: Apache-2.0
// The shared memory of this rank, joined to its fibers and messages. It begins when it is first
// used: here, or by another rank.
#pragma once

namespace sojourn::detail {

/// Requires: called on the worker thread, after map_region and before the dispatcher is attached.
void attach_shared_memory();

}  // namespace sojourn::detail
