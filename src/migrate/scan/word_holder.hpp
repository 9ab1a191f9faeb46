// SPDX-License-Identifier: Apache-2.0
// Finds out who holds a word in frames that leave. Most words there that look like addresses are
// dead, left by calls that have returned. Debug information on variables (-g) tells which are not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frames/debug_info.hpp"
#include "frames/stack_frames.hpp"

namespace sojourn::detail {

struct word_holder {
  enum class kind : std::uint8_t {
    variable,  ///< A variable of pointer type, or with a pointer in it.
    unnamed,   ///< A register of a function, in which no variable is known to be.
    unknown,   ///< The program has no debug information on the variables of that function.
    nobody     ///< The word is dead, or is the runtime's own.
  };
  kind what = kind::nobody;
  const frame* in =
      nullptr;  ///< The frame that holds it, a frame of the program; null: nobody holds it.
  std::uint64_t at = 0;  ///< Where in that frame; 0 when the word is in a register.
  std::string variable;  ///< The name of the variable.
};

/// Who holds the `word` that lies at `at`. `frames`: the frames that leave, the youngest first;
/// frames that are younger still may come before them. Remembers what debug information says of a
/// place.
word_holder holder_of(const std::vector<frame>& frames, std::uint64_t at, std::uint64_t word);

/// The variable of the frame in which the word at `at` lies. Remembered, too.
const frame_variable& variable_in_frame(const frame& f, std::uint64_t at);

}  // namespace sojourn::detail
