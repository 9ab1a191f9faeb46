// SPDX-License-Identifier: Apache-2.0
// The *gate*: which frames may leave their rank. Two other things may keep frames here: words in
// them (scan.hpp, stretch_scan.hpp), and a finish scope that must give more weight first.
#pragma once

#include "fiber/boundary.hpp"
#include "fiber/piece.hpp"
#include "sojourn/threads/thread.hpp"

namespace sojourn::detail {

/// Why frames do not leave their rank.
struct stay_reason {
  thread_refusal kind;
  const char* text;
};

/// Why the frames of `p` that are younger than `oldest` stay where they are; null when they may
/// leave. Without an `oldest`: all frames of `p`. Requires: `p` has just been suspended.
const stay_reason* reason_to_stay(const piece* p, const boundary& oldest);
/// The same for a whole piece, which may be an image: frames in an image are not read.
const stay_reason* reason_whole_stays(const piece* p);
/// The same for a stretch of the running piece: the frames from its mark `younger` up to the next
/// older one, `older`, or up to the end of the piece when there is no `older`. The frames younger
/// than `younger` run on here.
const stay_reason* reason_stretch_stays(const boundary& younger, const boundary& older);
/// The same for the whole running piece. Requires: no mark is open in it.
const stay_reason* reason_running_stays();

}  // namespace sojourn::detail
