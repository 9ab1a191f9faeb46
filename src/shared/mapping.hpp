// SPDX-License-Identifier: Apache-2.0
// The shared region of this rank, mapped twice: the program's view, whose pages allow what the
// protocol says, and the runtime's view of the same memory, which is always open. Both begin at the
// same addresses on all ranks; the memory is this rank's own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/address_map.hpp"
#include "shared/page_views.hpp"
#include "shared/pages/page.hpp"
#include "shared/protection.hpp"

namespace sojourn::detail::pages {

class mapping {
 public:
  /// Maps nothing yet. `protection` is told of all pages that are mapped, and outlives this.
  /// Requires: map_region was called. Throws sojourn::error with the reason and the remedy.
  explicit mapping(protection& protection);
  /// Unmaps everything; the addresses stay reserved.
  ~mapping();
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;

  /// Maps further pages, until there are at least so many bytes. The new pages are zero, and allow
  /// the program nothing. Memory is taken when they are touched. Throws sojourn::error with the
  /// reason and the remedy; the mapping is then as it was.
  void grow(std::size_t bytes);
  /// How many bytes are mapped in each view.
  std::size_t bytes() const { return bytes_; }
  /// How many bytes can be mapped: half a unit of the region (a sixteenth of the region, or of the
  /// power of two below it).
  static std::size_t capacity() { return addresses.shared_bytes(); }

 private:
  void map_view(std::uint64_t at, std::size_t bytes, int allows);
  void unmap(std::size_t from, std::size_t bytes);

  protection& protection_;
  int file_;
  std::size_t bytes_ = 0;
};

}  // namespace sojourn::detail::pages
