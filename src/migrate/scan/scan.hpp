// SPDX-License-Identifier: Apache-2.0
// The pointer scan: before bytes of a stack leave a rank, it looks among them for words that point
// into what stays behind: the private heap, libraries and, in the arguments of an activation, the
// frames of its callers. A dead word or a number can look like a pointer, so the scan only warns
// and changes nothing. (Other words that point to callers' frames are mostly dead, left by calls
// that returned; checked mode, which clears the stack below a mark, stops at them:
// checked_scan.hpp.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sojourn/detail/mark.hpp"

namespace sojourn::detail {

/// Index of the first of `count` words that points into private memory, aligned as objects are;
/// `count` when none does.
std::size_t find_stale_pointer(const std::uint64_t* words, std::size_t count);

/// A way to find such a word, for processors that have `instructions`. It takes the first heap of
/// the C library to end where it ended at the last call of find_stale_pointer or
/// private_memory_now.
struct stale_pointer_finder {
  const char* instructions;
  std::size_t (*find)(const std::uint64_t* words, std::size_t count);
};
/// The ways that this processor can run, the fastest first: find_stale_pointer uses that one.
std::span<const stale_pointer_finder> stale_pointer_finders();

/// Scans the frames [sp, hi) of a piece, which are in place. `base`: the mark at which they end, if
/// it is on this rank; the arguments of its activation are then scanned, too. `slot_high`: where
/// the frames of their callers end. Warns once per function. Does nothing when the scan is off or
/// checked mode is on.
void scan_frames(std::uint64_t sp, std::uint64_t hi, std::uint64_t slot_high, const mark* base);

/// Where this rank's private memory lies: the first heap of the C library as it is now, and from
/// the libraries to the end of the user's addresses.
struct private_memory {
  std::uint64_t heap_low, heap_high;
  std::uint64_t top_low, top_high;
  std::uint64_t user_end;
};
private_memory private_memory_now();
/// The address ranges that this process has mapped, in ascending order. Reads /proc/self/maps.
/// Throws sojourn::error.
struct mapping {
  std::uint64_t low, high;
};
std::vector<mapping> mappings_now();
/// True when SOJOURN_SCAN is on. Unset, it is on except in builds with the address sanitizer.
bool scan_is_enabled();

/// Reads SOJOURN_SCAN and the bounds of private memory. Throws sojourn::error. Requires: the region
/// is mapped.
void attach_scan();

}  // namespace sojourn::detail
