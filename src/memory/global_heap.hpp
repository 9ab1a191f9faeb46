// SPDX-License-Identifier: Apache-2.0
// The allocator of this rank's heap partition: the standard library's pools over runs of pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

/// Requires: the region is mapped. In checked mode `secret`, the job's, says where objects begin,
/// so that an address kept from another job is mostly no object of this one.
void attach_heap(std::uint64_t secret);
class file_writer;
class file_reader;

/// Writes what lies in this rank's partition, and the allocator's books.
void save_heap(file_writer& to);
/// Puts it back, in the partition of a fresh job. Throws sojourn::error.
void load_heap(file_reader& from);

/// Bytes of the partition that are allocated to objects now.
std::size_t heap_bytes_in_use();

/// Bytes of memory in long runs of pages that were freed and wait to be used again: having them of
/// the system anew takes thirty times as long as clearing them.
extern std::size_t heap_bytes_kept;
/// Gives them back to the system when none was freed in the last second. For ranks that are about
/// to fall asleep.
void trim_heap();

}  // namespace sojourn::detail
