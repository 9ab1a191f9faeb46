// SPDX-License-Identifier: Apache-2.0
// What becomes of a word that the pointer scan suspects: most are dead, left by calls that have
// returned; a warning names the function of a likely live one, once.
#pragma once

#include <cstdint>

#include "migrate/stretch_scan.hpp"

namespace sojourn::detail {

/// True when the C library's allocator has an object that starts at `address`.
bool is_allocated_object(std::uint64_t address);

/// Whither frames go where their pointers into private memory point to nothing.
enum class leaves_for : std::uint8_t { another_rank, a_checkpoint };

/// `address`: of the word, in a frame that is about to leave; `hi`: the older end of those frames;
/// `older`: it points into the frames that stay, and was an argument of the activation that moves;
/// otherwise into private memory. Requires: called
/// below those frames, on their stack.
void report_stale_pointer(std::uint64_t address, std::uint64_t hi, std::uint64_t word, bool older,
                          leaves_for where = leaves_for::another_rank);

/// Says once a function that an idle rank did not get its frame, and for which word, in checked
/// mode and where SOJOURN_STATS asks for it. The frames are [low, hi). Requires: called below those
/// frames, on their stack.
void report_refused_steal(const word_that_stays& found, std::uint64_t low, std::uint64_t hi);
/// Reads SOJOURN_STATS. Throws sojourn::error.
void attach_stale_report();

}  // namespace sojourn::detail
