// SPDX-License-Identifier: Apache-2.0
// The page that holds a rank's counts, and what other ranks tell it without a message.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sojourn/counters.hpp"
#include "sojourn/shared/counters.hpp"

namespace sojourn::detail {

#if defined(__aarch64__)
inline constexpr std::size_t counts_page_bytes = 65536;  // The largest page the kernel may have.
#else
inline constexpr std::size_t counts_page_bytes = 4096;
#endif

/// The counts, in a page over which the job's shared memory is mapped: whatever ends the rank, the
/// launcher can read them. The page also has what other ranks tell this one without a message.
struct alignas(counts_page_bytes) counts_page : counters {
  std::uint64_t methods{};  ///< Calls on local objects, and depth: see method_guard. No counter.
  std::uint64_t yields{};   ///< Begun; each ends with a switch. Tells polling from progress.

  /// Forks look at it and other ranks write it: see at_fork. In a cache line apart from what is
  /// counted often.
  alignas(64) std::uint32_t at_forks{};
  /// Bit r, written by rank r: that rank has nothing to do, and would take over work from a fork
  /// here.
  std::uint64_t hungry[16]{};

  shared::counters shared{};

  /// The counts, `methods` included.
  counters now() const;
};
extern counts_page counts;

}  // namespace sojourn::detail
