// SPDX-License-Identifier: Apache-2.0
// Walks stacks that do not run: of suspended pieces, and of what a signal interrupted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber/piece.hpp"

namespace sojourn::detail {

/// Call addresses of a suspended piece, youngest first, without the frames that belong to older
/// pieces. Returns how many. Requires: `p` is in place, and the caller is on the scheduler's stack.
std::size_t walk_suspended(const piece* p, std::uint64_t* frames, std::size_t most);

/// True when a signal has interrupted code on the stack of a fiber, which can be walked, and not
/// the scheduler or a change of stacks. `context` is the third argument of its handler.
bool interrupted_fiber(const void* context);

/// Call addresses of the interrupted code, youngest first; to be called in the handler. Frames from
/// `stop` on are left out (0: none). Async-signal-safe after prepare_walks()
/// (frames/walk.hpp).
std::size_t walk_interrupted(const void* context, std::uint64_t stop, std::uint64_t* frames,
                             std::size_t most);

}  // namespace sojourn::detail
