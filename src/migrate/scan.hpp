// SPDX-License-Identifier: Apache-2.0
// The pointer scan: before bytes of a stack leave a rank, words among them that point into what
// stays behind are found: private heap and libraries, and the frames of older activations.
// Conservative: a dead word or a number can look like a pointer, so it warns and does not rebase.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sojourn::detail {

/// Addresses that mean nothing on another rank.
struct left_behind {
  std::uint64_t older_low;   ///< Frames that stay: [older_low, older_high), one slot.
  std::uint64_t older_high;
  std::uint64_t base;        ///< The mark they end at: its address is compared, never followed.
};

/// Index of the first of `count` words that points into private memory or `frames`; `count` when
/// none does.
std::size_t find_stale_pointer(const std::uint64_t* words, std::size_t count,
                               const left_behind& frames);

/// Scans frames, [sp, hi), in place, that end at the mark `base`, and warns once a function and
/// kind. On unless SOJOURN_SCAN=off.
void scan_frames(std::uint64_t sp, std::uint64_t hi, std::uint64_t slot_high, const void* base);

/// Reads SOJOURN_SCAN and the bounds of the private heap. Throws sojourn::error.
void attach_scan();

}  // namespace sojourn::detail
