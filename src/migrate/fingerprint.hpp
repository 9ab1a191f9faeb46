// SPDX-License-Identifier: Apache-2.0
// Which ranks run the same executable, and so name code by its address; which of those may exchange
// stacks, too; and which ranks may exchange messages at all. Ranks compare this when the job
// starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sojourn::detail {

/// What a stack needs where it goes, beside the executable, each as a number that is equal where
/// the thing is: the libraries that are loaded at the start, the address of thread-local variables,
/// and what the processor has, by which libraries choose their functions.
enum class stack_need { libraries, thread_locals, processor };
inline constexpr std::size_t stack_need_count = 3;

struct fingerprints {
  std::uint64_t image;
  std::uint64_t stack_needs[stack_need_count];

  /// All of it as one number.
  std::uint64_t all() const;
};

/// Computed at the first call, when the job starts, so that libraries which are loaded later
/// (reports load one for debug information) change nothing. Requires: that call is on the worker
/// thread.
const fingerprints& fingerprint();

/// fingerprints::image, from any thread.
std::uint64_t image_fingerprint();

/// What the first need in which they differ is about: "other libraries"; "" where they do not.
std::string what_differs(const std::uint64_t (&a)[stack_need_count],
                         const std::uint64_t (&b)[stack_need_count]);

/// Fingerprint of what messages between programs consist of: numbers of handlers, and sizes of what
/// they hold. Equal in all ranks of a job.
std::uint64_t wire_fingerprint();

}  // namespace sojourn::detail
