// SPDX-License-Identifier: Apache-2.0
// Who holds a word that lies in frames which leave: most words there that look like addresses are
// dead, left by calls that have returned. Debug information on variables (-g) tells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  const frame* in = nullptr;  ///< One of the frames, which is the program's; null: nobody.
  std::uint64_t at = 0;       ///< Where in that frame; 0 when the word is in a register.
  std::string variable;       ///< Its name.
};

/// Who holds the `word` that lies at `at`. `frames`: those that leave, the youngest first; younger
/// ones may come before them. Remembers what debug information says of a place.
word_holder holder_of(const std::vector<frame>& frames, std::uint64_t at, std::uint64_t word);

}  // namespace sojourn::detail
