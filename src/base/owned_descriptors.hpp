// SPDX-License-Identifier: Apache-2.0
// Descriptors that the program does not know of and must not close: shared memory learns of
// accesses by one of them, and ranks wake each other and reach other hosts by others. Some
// programs, such as daemons and test drivers, close all descriptors but their own (closefrom(3), a
// loop over close()). They would otherwise have wrong values in shared memory, or a rank that
// sleeps for ever.
#pragma once

namespace sojourn::detail {

/// From now on close(), closefrom() and close_range() leave this descriptor open in this process,
/// and dup2() and dup3() do not replace it. In child processes they do.
void own_descriptor(int descriptor);

/// Closes a descriptor, owned or not.
void close_owned(int descriptor);

}  // namespace sojourn::detail
