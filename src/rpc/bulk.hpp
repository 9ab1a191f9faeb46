// SPDX-License-Identifier: Apache-2.0
// One-sided copies: a memcpy where the heap is shared, one copy by the system where ranks may read
// each other's memory, and messages where neither is so, or where a short read is answered sooner.
#pragma once

namespace sojourn::detail {

/// Registers the handlers of copies by messages. Before any message arrives; once the region is
/// mapped.
void attach_bulk();

}  // namespace sojourn::detail
