// SPDX-License-Identifier: Apache-2.0
// The allocator of this rank's heap partition: the standard library's pools over runs of pages.
#pragma once

#include <cstddef>

namespace sojourn::detail {

/// Requires: the region is mapped.
void attach_heap();
/// Bytes of the partition that are allocated to objects now.
std::size_t heap_bytes_in_use();

}  // namespace sojourn::detail
