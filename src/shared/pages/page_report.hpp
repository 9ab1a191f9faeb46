// SPDX-License-Identifier: Apache-2.0
// What a rank notes of each page for `--shared-report`: where the program faults, which ranks store
// to the page between the same two barriers, and whether the diffs that meet here share bytes.
// Only there while a report is wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "shared/pages/interval_log.hpp"
#include "shared/pages/page.hpp"

namespace sojourn::detail::pages {

/// Faults and writers of a page, as far as one rank knows.
struct page_notes {
  std::uint64_t loads = 0;   ///< Faults by loads,
  std::uint64_t stores = 0;  ///< and by stores.
  std::uint64_t remote = 0;  ///< How many of these asked other ranks.
  std::uint64_t shared_epochs =
      0;                        ///< Times from barrier to barrier in which several ranks stored.
  std::uint64_t met_apart = 0;  ///< Pairs of unordered diffs of two ranks without a common byte,
  std::uint64_t met_on_a_byte = 0;  ///< Pairs of such diffs with a common byte.
  std::uint64_t writers =
      0;  ///< Bit r: rank r is one of several writers; ranks from 63 on share a bit.

  /// Adds what another rank has noted. Two diffs may be compared on several ranks, so of those
  /// counts the greatest is taken, not the sum.
  page_notes& operator+=(const page_notes& other);
};

/// A data race: two ranks stored to the same byte, and nothing ordered them.
struct race_note {
  page_number page;
  std::uint32_t offset;  ///< The first such byte in the page.
  int ranks[2];          ///< In ascending order.
  std::uint64_t times;
};

class page_report {
 public:
  page_report(int ranks, std::pmr::memory_resource* memory)
      : ranks_(ranks), pages_(memory), sites_(memory), races_(memory), met_(memory) {}
  page_report(const page_report&) = delete;
  page_report& operator=(const page_report&) = delete;

  /// A fiber has faulted at the instruction `code`. `remote`: other ranks were asked.
  void fault(page_number page, bool store, bool remote, std::uint64_t code);
  /// Notes that two ranks stored to the page between the same two barriers. `first`: they are the
  /// first two ranks known to have. To be called on one rank: the page's home.
  void several_writers(page_number page, int one, int other, bool first);
  /// This rank has made or fetched the diff of a page for an interval. Compares it with all other
  /// diffs since the last collection that are unordered with it.
  void meet(page_number page, const interval_record& of, std::span<const std::byte> diff);
  /// To be called when a collection has ended: all diffs up to then have been compared.
  void forget_diffs() { met_.clear(); }

  const auto& pages() const { return pages_; }
  /// Faults by page and instruction.
  const auto& sites() const { return sites_; }
  std::vector<race_note> races() const;

 private:
  struct kept_diff {
    kept_diff(const interval_record& of, int ranks, std::span<const std::byte> diff,
              std::pmr::memory_resource* memory);
    bool before(const kept_diff& other) const { return other.clock[owner] >= index; }
    std::uint16_t owner;
    interval index;
    vector_clock clock;
    std::pmr::vector<std::byte> bytes;
  };

  const int ranks_;
  std::pmr::unordered_map<page_number, page_notes> pages_;
  std::pmr::map<std::pair<page_number, std::uint64_t>, std::uint64_t> sites_;
  struct found {
    std::uint32_t offset;
    std::uint64_t times;
  };
  std::pmr::map<std::tuple<page_number, int, int>, found> races_;
  std::pmr::unordered_map<page_number, std::pmr::vector<kept_diff>> met_;
};

}  // namespace sojourn::detail::pages
