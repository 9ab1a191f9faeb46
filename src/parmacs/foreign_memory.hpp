// SPDX-License-Identifier: Apache-2.0
// Names what a process did that followed a pointer to memory which only another process has, or one
// that has lost its upper half.
#pragma once

namespace sojourn::detail {

/// From now on faults at such addresses are named. Requires: the program's heap is attached.
void watch_foreign_memory();

}  // namespace sojourn::detail
