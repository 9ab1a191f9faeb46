// SPDX-License-Identifier: Apache-2.0
// How much is under way at a time: of a loop (fork.hpp), and of what a finish waits for
// (finish.hpp).
#pragma once

#include <cstddef>

namespace sojourn {

/// At most so many calls are under way at a time: when one is over, the next one may begin, however
/// long others take.
struct window {
  std::size_t in_flight;  ///< At least 1.
};

namespace detail {
[[noreturn]] void refuse_window();
}  // namespace detail

}  // namespace sojourn
