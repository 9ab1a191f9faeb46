// SPDX-License-Identifier: Apache-2.0
// The protocol `lmw`: lazy release consistency with several writers a page, without a home. A store
// fault makes a twin of the page. At a release the rank's interval is closed, and what it lists is
// told with the next lock or barrier. Who acquires closes its copies of these pages. Who then
// faults on one asks its writers for diffs, which are made only when somebody asks.
//
// A page is in one of these states:
//
//   none       no copy; the `keeper` is asked for the page
//   stale      a copy that lacks modifications this rank knows of; the base for diffs
//   clean      a valid copy, perhaps with the twin of a closed interval whose diff nobody wanted
//   yet open       stored to in the open interval; there is a twin sticking   open for good:
//   compared at each close, and its twin renewed exclusive  nobody else has a copy: no twin, no
//   diff, no notice
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

#include "shared/exchange.hpp"
#include "shared/page.hpp"

namespace sojourn::detail::pages {

struct page_history;
struct page_fetch;

/// What a rank knows of a page. Zeros mean that nothing has happened to it yet.
struct lmw_page {
  enum class fetch_kind : std::uint8_t { none, page, diffs };
  static constexpr std::uint8_t for_load = 1;
  static constexpr std::uint8_t for_store = 2;

  access may;    ///< What the state allows.
  access shown;  ///< What protection allows: the same between two calls of the protocol.
  bool changes;  ///< In the list of pages whose protection changes.
  bool known;    ///< The members below are valid.
  bool copy;
  bool exclusive;
  bool fresh;  ///< At its home: nobody has touched it.
  bool open;   ///< Stored to in the open interval; there is a twin.
  bool sticks;
  bool outdated;  ///< What is on its way here is from before a barrier that made it useless.
  bool must;      ///< To be fetched before the next arrival.
  bool deferred;  ///< To be asked for when the collection has ended.
  fetch_kind fetching;
  std::uint8_t wanted;     ///< for_load, for_store: fibers wait.
  std::uint8_t unchanged;  ///< While it sticks: closes running that found no change.
  bool several_writers;    ///< In epoch `seen`.
  std::uint16_t keeper;    ///< Whom to ask for the whole page.
  std::uint16_t writer;    ///< In epoch `seen`.
  std::uint16_t missing;   ///< Replies.
  std::uint32_t seen;      ///< The epoch in which a notice of it was looked at last.
  interval twin_of;        ///< The closed interval that the twin is from the beginning of.
  interval listed;         ///< The last interval of this rank that lists it.
  interval thrown;         ///< This rank's diffs up to here are gone.
  std::byte* twin;
  page_history* history;  ///< Null: no rank is known to have listed it, and it never was shared.
  page_fetch* fetch;
};

class lmw {
 public:
  struct settings {
    bool exclusive = true;    ///< Pages with one writer become exclusive at barriers.
    bool sticking = true;     ///< Pages stored to in two intervals running stay writable.
    bool whole_pages = true;  ///< Diffs that are longer than the page are answered with the page.
    bool claims = true;       ///< An untouched page goes to the first rank that stores to it.
  };
  /// `table` has a zeroed entry for each page of the region.
  lmw(exchange& x, std::span<lmw_page> table, const settings& s);
  lmw(const lmw&) = delete;
  lmw& operator=(const lmw&) = delete;
  ~lmw();

  /// A fiber needs the page. It is woken, now or later, and looks again.
  void fault(page_number g, bool store);
  /// Closes the open interval.
  void close();
  /// A notice: from an interval of another rank that was not known.
  void learn(const interval_record& r);

  /// After a barrier: exchange::barrier and epoch are the new ones, and all notices are taken in.
  void find_exclusive();
  /// Some copies were dropped that must be fetched before this rank arrives again.
  bool must_fetch() const { return !must_.empty(); }
  void fetch_what_must();

  /// A collection: keepers fetch what they lack.
  void begin_collection();
  bool fetches_in_progress() const { return fetches_ != 0; }
  /// From now on no fetch begins, until end_collection.
  void stop_fetching() { stopped_ = true; }
  /// All ranks have stopped: diffs and records up to the barrier go.
  void end_collection();
  /// Bytes of diffs, twins and notices, which a collection gives back.
  std::size_t collectable_bytes() const { return bytes_; }

  void receive(page_message_reader& from, const message_head& head);

  /// Makes protection what the states allow. Called at the end of whatever was called above.
  void show();

 private:
  struct one_diff;

  lmw_page& page(page_number g);
  page_history& history_of(lmw_page& a);
  page_number number_of(const lmw_page& a) const {
    return static_cast<page_number>(&a - table_.data());
  }
  interval* has(lmw_page& a);
  void set_may(lmw_page& a, access to);
  bool is_valid(lmw_page& a);
  void open(lmw_page& a);
  void share(lmw_page& a);
  void unstick(lmw_page& a);
  void end_sticking(lmw_page& a);
  void stick(lmw_page& a);
  void renew_twin(lmw_page& a);
  void drop_twin(lmw_page& a);
  void make_own_diff(lmw_page& a);
  void drop_copy(lmw_page& a);
  void note_own(lmw_page& a, interval index);
  void invalidate(lmw_page& a, const interval_record& r);
  template <class Visit>
  void each_listed(std::span<const interval> after, std::span<const interval> up_to, Visit visit);

  void start_fetch(lmw_page& a, bool store);
  void fetch_with_neighbours(page_number g);
  bool ask_for_diffs(lmw_page& a);
  void send_requests();
  void reply_came(lmw_page& a);
  void apply_all(lmw_page& a);
  void end_fetch(lmw_page& a);

  void serve_page(lmw_page& a, int to);
  void serve_diffs(lmw_page& a, int to, interval first, interval last,
                   std::span<const interval> theirs);
  void take_page(page_message_reader& from, const message_head& head, lmw_page& a);
  void take_diffs(page_message_reader& from, const message_head& head, lmw_page& a);
  lmw_page& checked_page(const page_message_reader& from, page_number g);

  void* allocate(std::size_t size) {
    bytes_ += size;
    return x_.host.memory()->allocate(size, 64);
  }
  void deallocate(void* block, std::size_t size) {
    bytes_ -= size;
    x_.host.memory()->deallocate(block, size, 64);
  }

  exchange& x_;
  std::span<lmw_page> table_;
  const settings settings_;
  std::pmr::vector<page_number> open_;     ///< Pages stored to in the open interval.
  std::pmr::vector<page_number> changes_;  ///< Pages whose protection changes.
  std::pmr::vector<page_number> must_;
  std::pmr::vector<page_number> deferred_;
  std::pmr::vector<page_number> listed_;  ///< Scratch.
  std::pmr::vector<page_range> ranges_;   ///< Scratch.
  struct request {
    int to;
    page_message what;
    bool store;
    page_number page;
    interval first;
    interval last;
  };
  std::pmr::vector<request> requests_;  ///< Of this call, sent at its end.
  std::size_t fetches_ = 0;
  std::size_t bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace sojourn::detail::pages
