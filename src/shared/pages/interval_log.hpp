// SPDX-License-Identifier: Apache-2.0
// Which intervals of which ranks a rank knows, and which pages each lists as stored to: the write
// notices of lazy release consistency.
// Source: Keleher, Cox and Zwaenepoel, "Lazy Release Consistency for Software Distributed Shared
// Memory" (ISCA 1992).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <type_traits>
#include <vector>

#include "shared/pages/page.hpp"
#include "shared/pages/page_message.hpp"

namespace sojourn::detail::pages {

/// The number of an interval of a rank. The first has number 1; 0 stands for none.
using interval = std::uint32_t;
/// For each rank the number of an interval; stands for all intervals up to these.
using vector_clock = std::pmr::vector<interval>;

/// How a page is listed whose protocol has versions: with its new version.
struct page_version {
  page_number page;
  std::uint32_t version;
};

/// How other pages are listed: pages in a row, which all have readers or all have none.
struct listed_range {
  page_number first;
  std::uint32_t count : 31;
  /// Other ranks read these pages, so they do not become exclusive (lmw).
  std::uint32_t has_readers : 1;
};

/// The pages that are listed for an interval that is about to be closed.
struct interval_pages {
  explicit interval_pages(std::pmr::memory_resource* memory) : ranges(memory), versions(memory) {}
  bool empty() const { return ranges.empty() && versions.empty(); }
  void clear() {
    ranges.clear();
    versions.clear();
  }
  std::pmr::vector<listed_range> ranges;
  std::pmr::vector<page_version> versions;
};

/// What a rank stored to from one release to the next. Lies in one block, with its clock and its
/// pages behind it.
struct interval_record {
  std::uint16_t owner;
  std::uint32_t range_count;
  std::uint32_t version_count;
  interval index;
  /// The sum of `clock`: an interval that happened before another has a smaller one.
  std::uint64_t order;

  /// What the owner knew when it closed the interval, this interval included.
  std::span<const interval> clock(int ranks) const {
    return {reinterpret_cast<const interval*>(this + 1), static_cast<std::size_t>(ranks)};
  }
  std::span<const listed_range> pages(int ranks) const {
    return {reinterpret_cast<const listed_range*>(clock(ranks).data() + ranks), range_count};
  }
  std::span<const page_version> versions(int ranks) const {
    return {reinterpret_cast<const page_version*>(pages(ranks).data() + range_count),
            version_count};
  }
};

/// Calls visit(page), or visit(page, has readers), for each page that the interval lists without a
/// version.
template <class Visit>
void each_page(const interval_record& r, int ranks, Visit visit) {
  for (const listed_range& range : r.pages(ranks)) {
    for (std::uint32_t i = 0; i < range.count; ++i) {
      if constexpr (std::is_invocable_v<Visit, page_number, bool>)
        visit(range.first + i, range.has_readers != 0);
      else
        visit(range.first + i);
    }
  }
}

/// Raises each number in `to` to the one in `other`, if that is greater.
inline void take_later(std::span<interval> to, std::span<const interval> other) {
  for (std::size_t i = 0; i < to.size(); ++i)
    if (other[i] > to[i]) to[i] = other[i];
}

class interval_log {
 public:
  /// `pages`: how many pages there are. `mine`: the number of this rank's last interval, whose
  /// record is gone; 0 at first. (Tests begin shortly before the last possible number, because to
  /// get there takes four billion intervals.)
  interval_log(int me, int ranks, std::size_t pages, std::pmr::memory_resource* memory,
               interval mine = 0);
  interval_log(const interval_log&) = delete;
  interval_log& operator=(const interval_log&) = delete;
  ~interval_log();

  /// For each rank the last interval such that this rank knows all intervals up to it.
  const vector_clock& known() const { return known_; }
  interval mine() const { return known_[static_cast<std::size_t>(me_)]; }
  /// One more than how often known() has grown.
  std::uint64_t changes() const { return changes_; }
  /// The record of an interval. Requires: it is known, and was not collected.
  const interval_record& find(int owner, interval index) const;
  std::size_t bytes() const { return bytes_; }

  /// Closes this rank's next interval. Ends the rank when there are no more numbers.
  const interval_record& close(const interval_pages& pages);

  /// Writes which intervals in `up_to` are not in `base`, and their records. A record's clock is
  /// written as its differences from the clock of the record before it, and the first one's as its
  /// differences from `like`.
  void write(message_writer& to, std::span<const interval> base, std::span<const interval> up_to,
             std::span<const interval> like) const;
  /// Reads what write() has written, with the same `like`, and calls learn(record) for each record
  /// that was not known, for each owner in the order of its intervals. From then on they are known.
  /// If any record is new, calls `before` first.
  template <class Before, class Learn>
  void read(page_message_reader& from, std::span<const interval> like, Before before, Learn learn);

  /// Refuses a clock of another rank that names intervals which this rank has not closed.
  void check_clock(const page_message_reader& from, std::span<const interval> clock) const {
    from.require(clock[static_cast<std::size_t>(me_)] <= mine(),
                 "tells of an interval of this rank that it has not closed");
  }

  /// Frees the records of intervals up to `collected`.
  void collect(std::span<const interval> collected);
  const vector_clock& collected() const { return collected_; }

 private:
  std::size_t block_bytes(std::uint32_t ranges, std::uint32_t versions) const {
    return sizeof(interval_record) + static_cast<std::size_t>(ranks_) * sizeof(interval) +
           ranges * sizeof(listed_range) + versions * sizeof(page_version);
  }
  interval_record* make(std::uint16_t owner, interval index, std::uint32_t ranges,
                        std::uint32_t versions);
  void free(interval_record* r);
  interval_record* read_record(page_message_reader& from, vector_clock& clock);
  void check(const page_message_reader& from, const interval_record& r) const;

  const int me_;
  const int ranks_;
  const std::size_t pages_;
  std::pmr::memory_resource* memory_;
  vector_clock known_;
  vector_clock collected_;
  /// By owner: the records of its intervals after those that were collected, without a gap.
  std::pmr::vector<std::pmr::deque<interval_record*>> of_;
  std::size_t bytes_ = 0;
  std::uint64_t changes_ = 1;
};

template <class Before, class Learn>
void interval_log::read(page_message_reader& from, std::span<const interval> like, Before before,
                        Learn learn) {
  std::uint32_t left = from.take<std::uint32_t>();
  if (left == 0) return;
  vector_clock clock(known_.size(), 0, memory_);
  std::copy(like.begin(), like.end(), clock.begin());
  vector_clock news(known_, memory_);
  bool any = false;
  for (; left != 0; --left) {
    interval_record* r = read_record(from, clock);
    const std::size_t owner = r->owner;
    if (r->index <= news[owner]) {
      free(r);
      continue;
    }
    from.require(r->owner != me_, "tells of an interval of this rank that it has not closed");
    // Each owner's records come in order, and begin with the first that this rank lacks.
    if (r->index != news[owner] + 1) from.refuse("leaves out an interval");
    if (!any) before();
    any = true;
    news[owner] = r->index;
    of_[owner].push_back(r);
    learn(*r);
  }
  if (any) ++changes_;
  take_later(known_, news);  // `before` may have closed an interval of this rank.
}

}  // namespace sojourn::detail::pages
