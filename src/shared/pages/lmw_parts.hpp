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

/// An interval of this rank that lists the page. Its diff is made when another rank asks for it.
struct own_notice {
  own_notice* older;
  interval index;
  bool made;
  std::uint16_t bytes;
  std::byte* diff;  ///< Null while the diff is not made, and when it is empty.
};

/// An interval of another rank that lists the page.
struct foreign_notice {
  foreign_notice* older;
  interval index;
};

/// When so many closes have found no change, comparing has cost as much as a fault.
inline constexpr std::uint8_t unchanged_closes_max = 8;
/// How often it is tried whether a page that is brought together with the page before it is wanted
/// at all: the first time, and once in so many times, it stays closed, and a fault shows that it is
/// wanted.
inline constexpr std::uint8_t brings_for_a_trial = 32;
/// How many pages, at most, are fetched as soon as a barrier is left. The other pages that follow
/// are each brought by a fault on the page before.
inline constexpr std::size_t pulls_max = 32;
/// Sending a diff longer than this saves little over sending the page, for which the writer need
/// not compare anything.
inline constexpr std::size_t dense_diff_bytes = page_bytes / 2;
/// After a diff longer than that, the page counts as dense until it has been listed so often.
inline constexpr std::uint8_t dense_for = 32;
/// For so many barriers a page to which this rank alone has stored is expected to be stored to
/// again.
inline constexpr std::uint32_t epochs_of_a_guess = 2;

// Flags in a request, of a page that is asked for.
inline constexpr std::uint32_t will_be_stored_to =
    1;                                       ///< A page that nobody has touched may be given away.
inline constexpr std::uint32_t is_pull = 2;  ///< See lmw_page::pulled.
inline constexpr std::uint32_t is_first =
    4;  ///< Of a fetch; later requests ask for what came to be known meanwhile.

/// True when other ranks have read the page since it was listed last, and a diff is much shorter
/// than the page. The page should not become exclusive then, because the readers would lose their
/// copies.
inline bool will_be_read_again(const lmw_page& page) {
  return page.readers != 0 && page.dense == 0;
}

/// True when the page is pinned for stores, so that a store to it at any time must not be lost.
/// Unless the page is exclusive, it has a twin, and sticks.
inline bool keeps_stores(const lmw_page& page) {
  return page.pinned == access::store && holds(rule::keep_pinned_stores);
}
inline bool is_used_meanwhile(const lmw_page& page) {
  return page.pinned != access::none && holds(rule::keep_pinned_stores);
}

/// A rank that has listed the page, with its notices. Only those that the copy lacks are looked at,
/// beginning with the newest, because there may be thousands of others.
struct page_writer {
  page_writer* next;
  foreign_notice* newest;
  int rank;
};

struct page_history {
  own_notice* newest = nullptr;
  page_writer* writers = nullptr;  ///< The other ranks that have listed the page.
  /// False: the copy is known to lack nothing. Set when a notice or another copy comes.
  bool may_lack = false;
};
// Behind a page_history lies, for each rank, the last interval whose modifications the copy has.

struct page_fetch {
  struct kept_diff {
    const interval_record* of;
    std::byte* bytes;
    std::uint16_t size;
  };
  explicit page_fetch(std::size_t ranks, std::pmr::memory_resource* memory)
      : after(ranks, 0, memory), up_to(ranks, 0, memory), diffs(memory) {}
  // By rank: the diffs of its intervals after `after` and up to `up_to` have come.
  vector_clock after;
  vector_clock up_to;
  std::pmr::vector<kept_diff> diffs;
  /// The bytes of a page that came while this rank's copy is pinned; or null.
  std::byte* whole = nullptr;
};

}  // namespace sojourn::detail::pages
