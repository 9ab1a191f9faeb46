// SPDX-License-Identifier: Apache-2.0
// What lmw keeps of a page beside its entry: notices, what each rank has of it, what is being
// fetched. For lmw's own sources alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "shared/pages/interval_log.hpp"
#include "shared/pages/page_entry.hpp"
#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

/// This rank has listed the page in an interval. The diff is made when somebody asks.
struct own_notice {
  own_notice* older;
  interval index;
  bool made;
  std::uint16_t bytes;
  std::byte* diff;  ///< Null when it is not made or empty.
};

/// Another rank has listed the page in an interval.
struct foreign_notice {
  foreign_notice* older;
  interval index;
};

/// After so many closes without a change, comparing has cost what a fault costs.
inline constexpr std::uint8_t unchanged_closes_max = 8;
/// The first time, and once in so many times, that a page is brought with the one before it, a
/// fault tells whether it is wanted.
inline constexpr std::uint8_t brings_for_a_trial = 32;
/// At most so many pages are fetched as soon as a barrier is left. Of the others that follow, a
/// fault on the page before it brings each.
inline constexpr std::size_t pulls_max = 32;
/// A longer diff saves little over the page, which its writer need not compare.
inline constexpr std::size_t dense_diff_bytes = page_bytes / 2;
/// When a page whose diff was that long has been listed so often, another diff is tried.
inline constexpr std::uint8_t dense_for = 32;
/// For so many barriers a page that this rank alone has stored to is expected to be stored to
/// again.
inline constexpr std::uint32_t epochs_of_a_guess = 2;

// Of a page that is asked for, in a request.
inline constexpr std::uint32_t will_be_stored_to =
    1;                                       ///< A page that nobody has touched may be given away.
inline constexpr std::uint32_t is_pull = 2;  ///< See lmw_page::pulled.
inline constexpr std::uint32_t is_first =
    4;  ///< Of a fetch; later requests ask for what came to be known meanwhile.

/// Others have read it since it was listed last, and a diff spares them much of the page: so it is
/// not to become exclusive, which would take it from them.
inline bool will_be_read_again(const lmw_page& page) {
  return page.readers != 0 && page.dense == 0;
}

/// The page is pinned for stores, so whatever is stored to it at any time must stay. Unless the
/// page is exclusive, it has a twin, and sticks.
inline bool keeps_stores(const lmw_page& page) {
  return page.pinned == access::store && holds(rule::keep_pinned_stores);
}
inline bool is_used_meanwhile(const lmw_page& page) {
  return page.pinned != access::none && holds(rule::keep_pinned_stores);
}

/// A rank that has listed the page, with all its notices. Only those that the copy lacks are looked
/// at, from the newest on: there may be thousands of others.
struct page_writer {
  page_writer* next;
  foreign_notice* newest;
  int rank;
};

struct page_history {
  own_notice* newest = nullptr;
  page_writer* writers = nullptr;  ///< Other ranks.
  /// Notices have come, or another copy has, since the copy was known to lack nothing.
  bool may_lack = false;
};
// Behind a page_history lies, for each rank, up to which interval the copy has its modifications.

struct page_fetch {
  struct kept_diff {
    const interval_record* of;
    std::byte* bytes;
    std::uint16_t size;
  };
  explicit page_fetch(std::size_t ranks, std::pmr::memory_resource* memory)
      : after(ranks, 0, memory), up_to(ranks, 0, memory), diffs(memory) {}
  // Of each rank, the diffs that have come: of its intervals after `after`, up to `up_to`.
  vector_clock after;
  vector_clock up_to;
  std::pmr::vector<kept_diff> diffs;
  /// The bytes of a page that came while this rank's copy is pinned; or null.
  std::byte* whole = nullptr;
};

}  // namespace sojourn::detail::pages
