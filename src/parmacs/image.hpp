// SPDX-License-Identifier: Apache-2.0
// What a new process sees of its creator, as after fork(): global variables, what was allocated by
// malloc(), and the creator's stack, at the same addresses on another rank.
//
// Only the program's global variables travel, not those of the runtime and the C library: the link
// step of `sojourn cc` gives them sections of their own.
#pragma once

#include "sojourn/rank.hpp"

namespace sojourn::detail {

/// Copies all of that to `to`, where no process runs. Suspends; the caller's fiber is the creator.
void send_image(rank_t to);

/// Whether an address lies in the program's global variables.
bool in_program_globals(std::uint64_t address);

}  // namespace sojourn::detail
