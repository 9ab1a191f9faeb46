// SPDX-License-Identifier: Apache-2.0
// What happens with a word that the pointer scan suspects. Most such words are dead, left by calls
// that have returned. If a variable holds the word, or may hold it, a warning names the function,
// once.
#pragma once

#include <cstdint>

#include "migrate/scan/word_that_stays.hpp"

namespace sojourn::detail {

/// True when the C library's allocator has an object of the program that starts at `address`.
bool is_allocated_object(std::uint64_t address);

/// Where frames go. In both places their pointers into private memory point to nothing.
enum class leaves_for : std::uint8_t { another_rank, a_checkpoint };

/// Warns of a word, and counts it (scan_warnings), unless it is dead as far as debug information
/// tells. `address`: where the word lies, in a frame that is about to leave. `hi`: the older end of
/// those frames. `older`: the word was an argument of the activation that moves, and points into
/// the frames that stay; otherwise it points into private memory. Requires: called below those
/// frames, on their stack.
void report_stale_pointer(std::uint64_t address, std::uint64_t hi, std::uint64_t word, bool older,
                          leaves_for where = leaves_for::another_rank);

/// From now on reports nothing about frames that have no debug information: libraries that run on
/// the fibers' stacks leave addresses of their own objects there.
void distrust_frames_without_debug_info();

/// In checked mode and with SOJOURN_STATS=on: says, once per function, that its frame was not given
/// to an idle rank, and which word is the reason. The frames are [low, high). Requires: called
/// below those frames, on their stack.
void report_refused_steal(const word_that_stays& found, std::uint64_t low, std::uint64_t hi);
/// Reads SOJOURN_STATS. Throws sojourn::error.
void attach_stale_report();

}  // namespace sojourn::detail
