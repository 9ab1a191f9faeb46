// SPDX-License-Identifier: Apache-2.0
// The frames of a fiber, one that runs or a suspended one, for sentences that name functions of the
// program.
#pragma once

#include <cstdint>
#include <vector>

namespace sojourn::detail {

struct frame {
  std::uint64_t code;       ///< An address in its function, inside the call that it makes.
  std::uint64_t low;        ///< Its bytes: from here …
  std::uint64_t high;       ///< … to its canonical frame address.
  std::uint64_t saved[11];  ///< Registers that the call must preserve, as it has left them.
};

/// Frames from the youngest to the one that ends at or above `hi`, at most `most`.
/// Requires: called below them, on their stack or on a signal's.
std::vector<frame> frames_below(std::uint64_t hi, std::size_t most = 256);

/// Those that begin in [sp, hi), all of them. Requires: as before, or called by call_below with
/// their piece.
std::vector<frame> frames_between(std::uint64_t sp, std::uint64_t hi);

/// DWARF's number of the register in frame::saved[i]; -1 beyond the last.
int saved_register(std::size_t i);

/// False for code of the runtime or of the standard library. Remembers what it was asked.
bool is_users(std::uint64_t code);

/// Code of the youngest of those frames that is the program's own; 0 when none is.
std::uint64_t user_code(std::uint64_t hi);

}  // namespace sojourn::detail
