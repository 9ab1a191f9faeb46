// SPDX-License-Identifier: Apache-2.0
// Which frames may leave their rank: the *gate*. Besides, the words in the frames may be a reason
// to stay (scan.hpp, stretch_scan.hpp), and a finish scope that must first give more weight.
#pragma once

#include "fiber/boundary.hpp"
#include "fiber/piece.hpp"
#include "sojourn/thread.hpp"

namespace sojourn::detail {

/// Why frames do not leave their rank.
struct stay_reason {
  thread_refusal kind;
  const char* text;
};

/// Why the frames of `p` that are younger than `oldest` stay where they are, or, without an
/// `oldest`, all of them; null when they may leave. Requires: `p` has just been suspended.
const stay_reason* reason_to_stay(const piece* p, const boundary& oldest);
/// The same for a whole piece. Also for a piece that is an image: of an image this reads no frames.
const stay_reason* reason_whole_stays(const piece* p);
/// The same for a stretch of the running piece: the frames from its mark `younger` up to the next
/// older one, `older`, or up to its end when there is no `older`. What is younger runs on here.
const stay_reason* reason_stretch_stays(const boundary& younger, const boundary& older);
/// The same for the whole running piece. Requires: no mark is open in it.
const stay_reason* reason_running_stays();

}  // namespace sojourn::detail
