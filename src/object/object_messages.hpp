// SPDX-License-Identifier: Apache-2.0
// Messages about copies of objects and about objects that move.
#pragma once

namespace sojourn::detail {

/// Registers their handlers.
void attach_object_messages();

}  // namespace sojourn::detail
