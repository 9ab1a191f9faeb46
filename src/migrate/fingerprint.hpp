// SPDX-License-Identifier: Apache-2.0
// Fingerprints, which ranks compare when the job starts. They tell which ranks run the same
// executable, and so may name code by its address; which of these may exchange stacks, too; and
// which ranks may exchange messages at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sojourn::detail {

/// What a stack needs on the rank that it goes to, besides the executable: the same libraries at
/// the start, thread-local variables at the same address, and the processor features by which
/// libraries choose their functions. Each need has a number that is equal on ranks where the need
/// is met.
enum class stack_need { libraries, thread_locals, processor };
inline constexpr std::size_t stack_need_count = 3;

struct fingerprints {
  std::uint64_t image;
  std::uint64_t stack_needs[stack_need_count];

  /// All fingerprints combined in one number.
  std::uint64_t all() const;
};

/// Computed at the first call, when the job starts, so that libraries which are loaded later
/// (reports load one for debug information) change nothing. Requires: that call is on the worker
/// thread.
const fingerprints& fingerprint();

/// fingerprints::image, from any thread.
std::uint64_t image_fingerprint();

/// Names the first need in which the two differ, such as "other libraries"; "" when they differ in
/// none.
std::string what_differs(const std::uint64_t (&a)[stack_need_count],
                         const std::uint64_t (&b)[stack_need_count]);

/// A fingerprint of the messages between programs: how many handlers there are, and the sizes of
/// what messages hold. It must be equal on all ranks of a job.
std::uint64_t wire_fingerprint();

}  // namespace sojourn::detail
