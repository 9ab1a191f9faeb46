// SPDX-License-Identifier: Apache-2.0
// Where a page of the shared region lies in each of the rank's two views (mapping.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/address_map.hpp"
#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {

/// A page in the program's view, and in the runtime's. Requires: the region is mapped that far.
inline std::byte* program_page(page_number page) {
  return reinterpret_cast<std::byte*>(addresses.shared + page * page_bytes);
}
inline std::byte* runtime_page(page_number page) {
  return program_page(page) + addresses.shared_bytes();
}
/// Requires: addresses.in_shared(address).
inline page_number page_of(std::uint64_t address) {
  return static_cast<page_number>((address - addresses.shared) / page_bytes);
}

}  // namespace sojourn::detail::pages
