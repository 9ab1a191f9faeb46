// SPDX-License-Identifier: Apache-2.0
// Which of the rows, planes or other parts of a problem a thread has.
#pragma once

#include <cstddef>

namespace apps::nine {

struct share {
  std::size_t first;
  std::size_t end;
};

/// Threads with consecutive numbers have adjacent parts, and their numbers of parts differ by one
/// at most. With more threads than parts some have none.
constexpr share share_of(std::size_t parts, int threads, int thread) {
  const auto all = static_cast<std::size_t>(threads);
  const auto me = static_cast<std::size_t>(thread);
  return {parts * me / all, parts * (me + 1) / all};
}

}  // namespace apps::nine
