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

}  // namespace sojourn::detail::pages
