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

/// Another rank has listed it.
struct foreign_notice {
  foreign_notice* older;
  interval index;
};

/// After so many closes without a change, comparing has cost what a fault costs.
inline constexpr std::uint8_t unchanged_closes_max = 8;
/// The first time, and once in so many times, that a page is brought with the one before it, a
/// fault tells whether it is wanted.
inline constexpr std::uint8_t brings_for_a_trial = 32;
/// At most so many pages are fetched as soon as a barrier is left; of the others that follow, each
/// is brought by a fault before it.
inline constexpr std::size_t pulls_max = 32;
/// A longer diff saves little over the page, which its writer need not compare.
inline constexpr std::size_t dense_diff_bytes = page_bytes / 2;
/// After so many lists with a page whose diff was that long, another diff is tried.
inline constexpr std::uint8_t dense_for = 32;
/// For so many barriers a page that this rank alone has stored to is expected to be stored to
/// again.
inline constexpr std::uint32_t epochs_of_a_guess = 2;

// Of a page that is asked for, in a request.
inline constexpr std::uint32_t will_be_stored_to =
    1;                                       ///< If nobody has touched it, it may be given away.
inline constexpr std::uint32_t is_pull = 2;  ///< See lmw_page::pulled.
inline constexpr std::uint32_t is_first =
    4;  ///< Of its fetch: a later one asks for what came to be known.

/// Others have read it since it was listed last, and a diff spares them much of the page: so it is
/// not to become exclusive, which would take it from them.
inline bool will_be_read_again(const lmw_page& page) {
  return page.readers != 0 && page.dense == 0;
}

/// What is stored to the page at any time must stay: it is pinned for that. Unless the page is
/// exclusive, it has a twin, and sticks.
inline bool keeps_stores(const lmw_page& page) {
  return page.pinned == access::store && holds(rule::keep_pinned_stores);
}
inline bool is_used_meanwhile(const lmw_page& page) {
  return page.pinned != access::none && holds(rule::keep_pinned_stores);
}

/// A rank that has listed it, with all its notices. They are looked at from the newest on, as far
/// as the copy lacks them: there may be thousands that it has.
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
// Behind it, for each rank: the copy has its modifications up to this interval.

struct page_fetch {
  struct kept_diff {
    const interval_record* of;
    std::byte* bytes;
    std::uint16_t size;
  };
  explicit page_fetch(std::size_t ranks, std::pmr::memory_resource* memory)
      : after(ranks, 0, memory), up_to(ranks, 0, memory), diffs(memory) {}
  // What has come, or been asked for: the intervals of each rank after `after`, up to `up_to`.
  vector_clock after;
  vector_clock up_to;
  std::pmr::vector<kept_diff> diffs;
  /// A page that came while the own one is pinned; or null.
  std::byte* whole = nullptr;
};

}  // namespace sojourn::detail::pages
