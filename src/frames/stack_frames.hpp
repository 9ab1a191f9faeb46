// SPDX-License-Identifier: Apache-2.0
// The frames of a running or suspended fiber, for messages that name functions of the program.
#pragma once

#include <cstdint>
#include <vector>

namespace sojourn::detail {

struct frame {
  std::uint64_t code;       ///< An address in its function, inside the call that it makes.
  std::uint64_t low;        ///< Its bytes: from here …
  std::uint64_t high;       ///< … to its canonical frame address.
  std::uint64_t saved[11];  ///< Its values of the registers that calls preserve.
};

/// Frames from the youngest to the one that ends at or above `hi`, at most `most`.
/// Requires: called below them, on their stack or on a signal's.
std::vector<frame> frames_below(std::uint64_t hi, std::size_t most = 256);

/// All frames that begin in [sp, hi). Requires: as for frames_below, or called by call_below with
/// the piece that has these frames.
std::vector<frame> frames_between(std::uint64_t sp, std::uint64_t hi);

/// DWARF's number of the register in frame::saved[i]; -1 beyond the last.
int saved_register(std::size_t i);

/// Code of the youngest frame below `hi` that is the program's own, or the runtime's with a
/// callable of the program inlined; 0 when there is none.
std::uint64_t user_code(std::uint64_t hi);

}  // namespace sojourn::detail
