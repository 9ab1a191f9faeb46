// SPDX-License-Identifier: Apache-2.0
// The pointer scan: before bytes of a stack leave a rank, words among them that point into what
// stays behind are found: the private heap and libraries, and, in the arguments of an activation,
// the frames of its callers. Conservative: a dead word or a number can look like a pointer, so it
// warns and does not rebase. (Other words that point to callers' frames are mostly dead, left by
// calls that returned; checked mode, which clears the stack below a mark, stops at them:
// checked_scan.hpp.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sojourn/detail/mark.hpp"

namespace sojourn::detail {

/// Index of the first of `count` words that points into private memory, aligned as objects are;
/// `count` when none does.
std::size_t find_stale_pointer(const std::uint64_t* words, std::size_t count);

/// Scans the frames of a piece, [sp, hi), in place, and, when the mark they end at is here, the
/// arguments of its activation; `slot_high`: where its callers' frames end. Warns once a function.
/// On unless SOJOURN_SCAN=off.
void scan_frames(std::uint64_t sp, std::uint64_t hi, std::uint64_t slot_high, const mark* base);

/// Where this rank's private memory lies: the first heap of the C library as it is now, and from
/// the libraries to the end of the user's addresses.
struct private_memory {
  std::uint64_t heap_low, heap_high;
  std::uint64_t top_low, top_high;
  std::uint64_t user_end;
};
private_memory private_memory_now();
/// What this process has mapped, by address. Reads /proc/self/maps. Throws sojourn::error.
struct mapping {
  std::uint64_t low, high;
};
std::vector<mapping> mappings_now();
/// SOJOURN_SCAN does not say off.
bool scan_is_enabled();

/// Reads SOJOURN_SCAN and the bounds of private memory. Throws sojourn::error. Requires: the region
/// is mapped.
void attach_scan();

}  // namespace sojourn::detail
