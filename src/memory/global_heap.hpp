// SPDX-License-Identifier: Apache-2.0
// The allocator of this rank's heap partition: the standard library's pools over runs of pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

/// Requires: the region is mapped. In checked mode `secret`, the job's, says where objects begin,
/// so that an address kept from another job is mostly no object of this one.
void attach_heap(std::uint64_t secret);
/// Bytes of the partition that are allocated to objects now.
std::size_t heap_bytes_in_use();

}  // namespace sojourn::detail
