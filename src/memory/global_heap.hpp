// SPDX-License-Identifier: Apache-2.0
// The allocator of this rank's heap partition: the standard library's pools over runs of pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

/// Requires: the region is mapped. In checked mode the job's `secret` decides where objects begin,
/// so that an address kept from another job rarely is that of an object of this one.
void attach_heap(std::uint64_t secret);
class file_writer;
class file_reader;

/// Saves what lies in this rank's partition, and the allocator's tables.
void save_heap(file_writer& to);
/// Restores them in the partition of a fresh job. Throws sojourn::error.
void load_heap(file_reader& from);

/// Memory from this rank's partition, for the fiber that runs. Throws std::bad_alloc.
void* take_from_heap(std::size_t bytes, std::size_t alignment);
void give_to_heap(void* memory, std::size_t bytes, std::size_t alignment);

/// Bytes of the partition that are allocated to objects now.
std::size_t heap_bytes_in_use();

/// Bytes of long freed runs of pages that are kept for reuse: to get them from the system again
/// takes thirty times as long as to clear them.
extern std::size_t heap_bytes_kept;
/// Gives these bytes back to the system when no long run was freed in the last second. For ranks
/// that are about to fall asleep.
void trim_heap();

}  // namespace sojourn::detail
