// SPDX-License-Identifier: Apache-2.0
#include "frames/thrown_frames.hpp"

namespace sojourn::detail {

namespace {
thrown_last thrown;
}

void last_words_are_of(const thrown_frames& frames, bool instead) { thrown = {frames, instead}; }
const thrown_last& thrown_last_words() { return thrown; }

}  // namespace sojourn::detail
