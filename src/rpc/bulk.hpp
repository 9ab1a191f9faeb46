// SPDX-License-Identifier: Apache-2.0
// One-sided copies. If the heap is shared, a copy is a memcpy; if ranks may read each other's
// memory, one copy by the system. Messages are used otherwise, and for short reads that are
// answered sooner.
#pragma once

namespace sojourn::detail {

/// Registers the handlers of copies by messages. Before any message arrives; once the region is
/// mapped.
void attach_bulk();

}  // namespace sojourn::detail
