// SPDX-License-Identifier: Apache-2.0
// A word that keeps frames on their rank, because it would lose its meaning if they left.
#pragma once

#include <cstdint>

namespace sojourn::detail {

/// What it points to, or seems to.
enum class stays_with : std::uint8_t {
  nothing,
  private_memory,  ///< The C library's heap, libraries, mapped memory.
  older_frames,    ///< Of the same stack.
  another_stack,
  thread_heap,
  heap_of_host,  ///< The global heap: what looks like a plain pointer may be a global_ptr.
  these_frames,  ///< An argument of the younger child, which stays while these leave.
};

struct word_that_stays {
  stays_with what = stays_with::nothing;
  std::uint64_t at = 0;  ///< Where the word lies.
  std::uint64_t word = 0;
};

}  // namespace sojourn::detail
