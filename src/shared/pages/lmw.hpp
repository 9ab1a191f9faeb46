// SPDX-License-Identifier: Apache-2.0
// The protocol `lmw`: lazy release consistency with several writers for each page, and no home. A
// store fault makes a twin of the page. At a release the rank's interval is closed, and the list of
// its pages goes out with the next lock or barrier. A rank that acquires closes its copies of these
// pages. When it faults on one of them, it asks the writers for diffs, which are made only when
// somebody asks.
//
// The states of a page (lmw_state); lmw::enter refuses any other change.
//
//         a page comes         a store faults      stored to in two intervals running
//   none -------------> closed -------------> open ----------------------------------> sticking
//    ^                  | ^ ^                  |                                          |
//    '------------------' | '------------------'  the interval is closed                  |
//     dropped at a        '---------------------------------------------------------------'
//     barrier                  no change found for several closes, or a notice comes
//
//   closed -> exclusive    at a barrier: this rank alone has stored to the page since the last one
//   exclusive -> closed    the page is served, or a notice comes (open, if it is stored to still)
//   closed -> guessed      another page is opened, and both were stored to together before
//   guessed -> open        the close finds a change; without one, guessed -> closed after some time
//   open -> sticking_for_pin -> open    while the page is pinned for stores
//   untouched -> exclusive, closed      the page is used first, here or by another rank
//   untouched -> none -> exclusive      home gives the page away to a rank that stores to it first
//
//   none       no copy: the `keeper` is asked for the page
//   closed     a copy to which nobody stores, perhaps with the twin of a closed interval whose diff
//              is not made yet. It is *clean* if it has all modifications that this rank knows of,
//              else *stale*, and then the base for diffs. lmw::is_valid tells which, from the
//              notices: so nothing has to be changed when a notice comes or goes
//   open       stored to in the open interval. This and the next three have a twin
//   guessed    opened before anybody stored to the page; compared with the twin at each close
//   sticking   stays open over closes: compared at each, and its twin renewed
//   sticking_for_pin    the same as long as it is pinned for stores. A barrier or a notice leaves
//              it open, though stale, or of no use at all (lmw_page::useless): what comes is put in
//              place beside what is stored meanwhile
//   exclusive  nobody else has a copy: no twin, no diff, no notice. No page becomes exclusive whose
//              records say that other ranks read it
//   untouched  exclusive, at its home, and not used yet: zeros
//
// What fibers will want is guessed from what they wanted before. A page whose copy a barrier has
// made useless *follows*: it is fetched as soon as the barrier is left, or with the page before it;
// now and then it stays closed when it has come, so that a fault tells whether it is wanted. Pages
// that this rank alone stored to together are opened for stores together; those that nobody has
// stored to are found by comparing at the close.
//
// Sources: Thitikamol and Keleher, "Per-Node Multi-Threading and Remote Latency", §3.1; Amza, Cox
// and others, "Adaptive Protocols for Software Distributed Shared Memory" (1999), for exclusive
// pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shared/pages/exchange.hpp"
#include "shared/pages/page.hpp"
#include "shared/pages/page_protocol.hpp"
#include "shared/pages/page_table.hpp"

namespace sojourn::detail::pages {

struct own_notice;
struct page_writer;

class lmw final : public page_protocol {
 public:
  struct settings {
    bool exclusive = true;    ///< Pages with one writer become exclusive at barriers.
    bool sticking = true;     ///< Pages stored to in two intervals running stay writable.
    bool whole_pages = true;  ///< Diffs that are longer than the page are answered with the page.
    bool claims = true;       ///< An untouched page goes to the first rank that stores to it.
    /// How many pages, at most, a fault brings or opens for stores, because fibers wanted them when
    /// they last wanted the first one.
    std::uint32_t together_max = 1;
  };
  lmw(exchange& x, page_table& table, const settings& s);
  ~lmw() override;

  void fault(page_number number, bool store, bool again) override;
  int keeper(page_number number) override { return entry_of(number).keeper; }
  bool is_untouched(page_number number) const override {
    return !table_[number].lmw.known || table_[number].lmw.state == lmw_state::untouched;
  }
  void restored(page_number number) override { touch(entry_of(number)); }
  bool can_be_pinned(page_number number, access how) override {
    return entry_of(number).may >= how;
  }
  void pinned(page_number number) override;
  void receive(page_message_reader& from, const message_head& head) override;

  /// Sends together the requests that were made since the last call. To be called after any other
  /// function here.
  void send_requests();
  /// A pinned page that lacks modifications which this rank has acquired, or null. While there is
  /// one, no fiber may run, because an access to a pinned page does not fault.
  const page_number* lacking_pinned() const {
    return lacking_pins_.empty() ? nullptr : &lacking_pins_.back();
  }

  // --- Intervals: as lsw

  /// Whether pages may have been stored to in the open interval; true also if pages are only open.
  bool has_stores() const { return !open_.empty(); }
  void list_stores(interval_pages& out);
  void learn(const interval_record& r);
  /// The interval was closed for which list_stores() has listed pages. `index`: its number.
  void closed(interval index);

  // --- Barriers and collections

  /// To be called when a barrier was left, all notices are taken in, and the epoch is the new one.
  /// Finds the pages that become exclusive.
  void departed();
  /// Whether pages must be fetched before this rank arrives at a barrier again: those whose copies
  /// were dropped with modifications of this rank, and pinned ones. (A page that is pinned for
  /// stores may be listed by then, and this rank may become its keeper.)
  bool must_fetch() const { return !must_.empty() || !lacking_pins_.empty(); }
  void fetch_what_must();
  /// Fetches pages that fibers will want again. To be called when a barrier was left and no
  /// collection comes.
  void fetch_ahead();
  /// True when no page of fetch_ahead() is under way any more, and no other rank is expected to
  /// fetch such pages from this rank.
  bool is_at_ease() const {
    return exchange_is_over_ || (pulls_under_way_ == 0 && pulls_due_ == 0);
  }
  /// Makes is_at_ease() true until the next barrier.
  void end_exchange() { exchange_is_over_ = true; }
  /// Begins a collection: the keepers fetch modifications that their pages lack.
  void begin_collection();
  bool fetches_in_progress() const;
  void stop_fetching() { stopped_ = true; }
  void end_collection();
  /// How many bytes diffs, twins of closed intervals, notices and what is known of pages take: a
  /// collection gives back most of them.
  std::size_t collectable_bytes() const { return bytes_; }

 private:
  struct one_diff;

  std::uint32_t together_at_most(page_number number) const {
    return x_.layout.alike(number, settings_.together_max);
  }
  lmw_page& entry_of(page_number number);
  page_history& history_of(lmw_page& page);
  std::size_t history_bytes() const;
  page_writer& writer_of(page_history& h, int rank);
  page_number number_of(const lmw_page& page) const { return table_.number_of(page); }
  interval* has(lmw_page& page);
  void set_may(lmw_page& page, access to) { table_.set_may(page, to); }
  void enter(lmw_page& page, lmw_state to);
  void touch(lmw_page& page);
  bool has_own(lmw_page& page);
  bool is_valid(lmw_page& page);
  void open(lmw_page& page);
  void share(lmw_page& page);
  void share_with_reader(lmw_page& page);
  void unstick(lmw_page& page);
  void stick(lmw_page& page);
  void renew_twin(lmw_page& page);
  void end_stores(lmw_page& page);
  void note_lacking(lmw_page& page);
  void end_lacking(lmw_page& page);
  void refresh_pinned();
  void drop_twin(lmw_page& page);
  void set_twin_of(lmw_page& page, interval closed);
  own_notice& note_own_diff(lmw_page& page);
  void make_own_diff(lmw_page& page);
  void drop_copy(lmw_page& page);
  void forget_history(lmw_page& page);
  void note_own(lmw_page& page, interval index);
  void invalidate(lmw_page& page, const interval_record& r);
  template <class Visit>
  void each_listed(std::span<const interval> after, std::span<const interval> up_to, Visit visit);

  bool is_stored_to_with(const lmw_page& page, const lmw_page& other) const;
  void open_for_stores(lmw_page& page, lmw_state how);
  void list_open(lmw_page& page);
  void open_with_neighbours(lmw_page& page);
  void start_fetch(lmw_page& page, bool store);
  void fetch_with_neighbours(page_number number);
  bool ask_for_diffs(lmw_page& page, std::uint32_t how);
  void reply_came(lmw_page& page);
  std::byte* room_beside(lmw_page& page);
  void apply_all(lmw_page& page);
  void end_fetch(lmw_page& page);
  void end_must(lmw_page& page);

  void serve_page(lmw_page& page, int to);
  void serve_diffs(lmw_page& page, int to, interval first, interval last,
                   std::span<const interval> theirs);
  void take_page(page_message_reader& from, const message_head& head, lmw_page& page);
  void take_diffs(page_message_reader& from, const message_head& head, lmw_page& page);
  lmw_page& checked_page(const page_message_reader& from, page_number number);
  std::uint32_t take_how(page_message_reader& from, const lmw_page& page);
  void note_reader(lmw_page& page, std::uint32_t how);
  /// Whether this rank alone has listed the page in the epoch that has just ended.
  bool is_own_of_epoch(const lmw_page& page) const {
    return page.seen == x_.epoch && !page.several_writers && page.writer == x_.me;
  }

  /// The length of a line, because a page is compared with its twin line by line.
  static constexpr std::size_t twin_alignment = 64;

  /// Allocates memory that a collection mostly gives back. (What is known of a page is kept as long
  /// as the page is here.)
  void* allocate(std::size_t size, std::size_t align = alignof(std::max_align_t)) {
    bytes_ += size;
    return x_.host.memory()->allocate(size, align);
  }
  void deallocate(void* block, std::size_t size, std::size_t align = alignof(std::max_align_t)) {
    bytes_ -= size;
    x_.host.memory()->deallocate(block, size, align);
  }

  exchange& x_;
  page_table& table_;
  const settings settings_;
  std::pmr::vector<page_number> open_;  ///< Pages that may have been stored to in the open
                                        ///< interval; some may have been closed again.
  std::pmr::vector<page_number>
      closing_;  ///< The pages of open_ that are listed for the interval that is being closed.
  std::pmr::vector<page_number> sticking_;  ///< The pages of open_ that stay open.
  std::pmr::vector<page_number> must_;      ///< See lmw_page::must. In order as lacking_pins_ is.
  std::pmr::vector<page_number> deferred_;
  /// Pinned pages that are being brought up to date. Pages that no longer are may lie between them,
  /// but not at the end: see lmw_page::lacks_pinned.
  std::pmr::vector<page_number> lacking_pins_;
  std::pmr::vector<page_number> listed_;  ///< Scratch.
  std::pmr::vector<page_number>
      ahead_;  ///< Pages that follow, and that the last barrier has made useless.
  std::uint32_t pulls_under_way_ = 0;  ///< Pages that fetch_ahead() is fetching.
  std::uint32_t pulls_due_ =
      0;  ///< How many pages other ranks are expected to fetch from this rank in the same way.
  struct request {
    int to;
    page_message what;
    bool is_waited_for;
    std::uint32_t how;
    page_number page;
    interval first;
    interval last;
  };
  std::pmr::vector<request> requests_;  ///< Requests that send_requests() will send.
  bool exchange_is_over_ =
      false;  ///< Nobody waits any longer for what fetch_ahead() has fetched in this epoch.
  std::size_t fetches_ = 0;
  std::size_t bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace sojourn::detail::pages
