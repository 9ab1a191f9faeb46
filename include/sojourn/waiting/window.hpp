// SPDX-License-Identifier: Apache-2.0
// How much is under way at a time: of a loop (fork.hpp), and of what a finish waits for
// (finish.hpp).
#pragma once

#include <cstddef>

namespace sojourn {

/// When one call is over the next one begins, however long others take.
struct window {
  std::size_t in_flight;  ///< So many calls at most; at least 1.
};

namespace detail {
[[noreturn]] void refuse_window();
}  // namespace detail

}  // namespace sojourn
