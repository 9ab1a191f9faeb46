// SPDX-License-Identifier: Apache-2.0
// Descriptors that the program does not know of and must not close: by one of them shared memory
// learns of accesses, by others ranks wake each other and reach other hosts. A program that closes
// all descriptors but its own (closefrom(3), a loop over close()), as daemons and test drivers do,
// would otherwise have wrong values in shared memory, or a rank that sleeps for ever.
#pragma once

namespace sojourn::detail {

/// From now on this process's close(), closefrom() and close_range() leave this descriptor open,
/// and its dup2() and dup3() do not replace it. In processes that it makes they do.
void own_descriptor(int descriptor);

/// Closes a descriptor, owned or not.
void close_owned(int descriptor);

}  // namespace sojourn::detail
