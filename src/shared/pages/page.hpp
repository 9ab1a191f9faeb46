// SPDX-License-Identifier: Apache-2.0
// Pages of the shared region, by number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sojourn::detail::pages {

inline constexpr std::size_t page_bytes = 4096;

using page_number = std::uint32_t;
struct page_range {
  page_number first;
  std::uint32_t count;
};

/// What the program may do with a page without a fault.
enum class access : std::uint8_t { none, load, store };

/// How a page is kept consistent; chosen with its allocation.
enum class protocol_kind : std::uint8_t { lmw, lsw, seq };
inline constexpr std::size_t protocol_kinds = 3;

}  // namespace sojourn::detail::pages
