// SPDX-License-Identifier: Apache-2.0
// Which pages are pinned, and how often. A pinned page stays here, and allows what was asked for,
// until as many pins have ended. page_protocol::pinned says what a protocol does about it.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <unordered_map>

#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {

class pins {
 public:
  explicit pins(std::pmr::memory_resource* memory) : counts_(memory) {}

  /// add() adds a pin of the page, and remove() ends one. Both return the access that its pins need
  /// together afterwards.
  access add(page_number g, access how) {
    count& c = counts_[g];
    ++(how == access::store ? c.to_store : c.to_load);
    return c.all();
  }
  access remove(page_number g, access how) {
    const auto at = counts_.find(g);
    count& c = at->second;
    --(how == access::store ? c.to_store : c.to_load);
    const access left = c.all();
    if (left == access::none) counts_.erase(at);
    return left;
  }
  bool any() const { return !counts_.empty(); }

 private:
  struct count {
    std::uint32_t to_load = 0;
    std::uint32_t to_store = 0;
    access all() const {
      return to_store != 0 ? access::store : to_load != 0 ? access::load : access::none;
    }
  };
  std::pmr::unordered_map<page_number, count> counts_;
};

}  // namespace sojourn::detail::pages
