// SPDX-License-Identifier: Apache-2.0
// How many pages a fault brings. Programs often go through memory in order: a fault right behind
// the pages that an earlier fault brought asks for twice as many, and any other fault asks for one
// page.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {

class streams {
 public:
  /// `most`: how many pages a fault may bring; 1: always one.
  explicit streams(std::uint32_t most) : most_(most) {}

  /// How many pages from `page` on to ask for, at least 1.
  std::uint32_t pages_at(page_number page) {
    if (most_ <= 1) return 1;
    for (stream& s : streams_) {
      // Pages in between may have been here already.
      if (page < s.next || page - s.next >= s.count) continue;
      s.count = std::min(2 * s.count, most_);
      s.next = page + s.count;
      return s.count;
    }
    streams_[oldest_] = {page + 1, 1};
    oldest_ = (oldest_ + 1) % streams_.size();
    return 1;
  }

 private:
  struct stream {
    page_number next = 0;     ///< The page behind those that the last fault asked for.
    std::uint32_t count = 0;  ///< How many pages that fault asked for; 0: no stream.
  };
  const std::uint32_t most_;
  /// Several, because the fibers of a rank may go through several arrays at a time.
  std::array<stream, 16> streams_ = {};
  std::size_t oldest_ = 0;
};

}  // namespace sojourn::detail::pages
