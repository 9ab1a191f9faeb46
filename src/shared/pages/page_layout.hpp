// SPDX-License-Identifier: Apache-2.0
// Which rank is home to a page, and which protocol the page has. Both follow from the page's
// number, the same on all ranks, so other ranks need to know nothing else of its allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <utility>
#include <vector>

#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {

class page_layout {
 public:
  /// Pages that are allocated by one rank for one protocol.
  struct part {
    std::uint16_t home;
    protocol_kind protocol;
  };
  /// Parts of equal length, one after the other. Pages behind the last part belong to it, too.
  page_layout(std::uint32_t pages_of_part, std::pmr::vector<part> parts)
      : pages_of_part_(pages_of_part), parts_(std::move(parts)) {}
  /// Each rank has a part for each protocol.
  static page_layout of_ranks(int ranks, std::uint32_t pages_of_part,
                              std::pmr::memory_resource* memory) {
    std::pmr::vector<part> parts(memory);
    for (int rank = 0; rank < ranks; ++rank)
      for (std::size_t kind = 0; kind < protocol_kinds; ++kind)
        parts.push_back({static_cast<std::uint16_t>(rank), static_cast<protocol_kind>(kind)});
    return {pages_of_part, std::move(parts)};
  }

  protocol_kind protocol_of(page_number page) const { return part_of(page).protocol; }
  /// The rank that keeps the page while nobody has touched it.
  int home(page_number page) const { return part_of(page).home; }
  std::uint32_t pages_of_part() const { return pages_of_part_; }
  /// How many pages from `page` on have the same protocol as it; at most `most`.
  std::uint32_t alike(page_number page, std::uint32_t most) const {
    std::uint32_t count = pages_of_part_ - page % pages_of_part_;
    for (std::size_t next = page / pages_of_part_ + 1;
         count < most && next < parts_.size() && parts_[next].protocol == protocol_of(page); ++next)
      count += pages_of_part_;
    return std::min(count, most);
  }

 private:
  const part& part_of(page_number page) const {
    return parts_[std::min<std::size_t>(page / pages_of_part_, parts_.size() - 1)];
  }
  std::uint32_t pages_of_part_;
  std::pmr::vector<part> parts_;
};

}  // namespace sojourn::detail::pages
