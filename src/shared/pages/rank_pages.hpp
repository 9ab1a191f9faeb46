// SPDX-License-Identifier: Apache-2.0
// The shared memory of one rank, without what the rank itself does for it (services): its pages,
// locks and barriers, and the messages about them. One rank is one memory: its fibers see each
// other's stores at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <unordered_map>
#include <vector>

#include "shared/pages/barriers.hpp"
#include "shared/pages/events.hpp"
#include "shared/pages/exchange.hpp"
#include "shared/pages/lmw.hpp"
#include "shared/pages/locks.hpp"
#include "shared/pages/lsw.hpp"
#include "shared/pages/news.hpp"
#include "shared/pages/page_table.hpp"
#include "shared/pages/pins.hpp"
#include "shared/pages/seq.hpp"

namespace sojourn::detail::pages {

struct rank_pages_settings {
  lmw::settings protocol;
  /// A rank that keeps so many more bytes of changes than after the last collection begins another
  /// one. Requires: room for the twins of all pages that one instruction stores to. A collection
  /// takes these twins away, so with less room the instruction might never run.
  std::size_t collect_bytes = std::size_t{64} << 20;
  /// To how many other ranks a rank passes on the departure from a barrier. With as few ranks as
  /// most jobs have, all departures come from rank 0. Requires: at least 1.
  int fan_out = 16;
  /// Where to count; null: in counters that nobody looks at.
  sojourn::shared::counters* counts = nullptr;
  /// See exchange::report.
  page_report* report = nullptr;
};

class rank_pages final : exchange {
 public:
  /// `table` has a zeroed entry for each page of the region.
  rank_pages(services& host, page_layout layout, int me, int ranks, std::span<page_entry> table,
             const rank_pages_settings& s);
  ~rank_pages() override;
  using exchange::layout;

  /// A fiber has faulted on a page. Either it may go on when this returns, or it waits until
  /// services::wake_page; in both cases it executes its instruction again. `again`: this is the
  /// same instruction as at the fiber's last fault, and it has not run since, because its address
  /// and all general registers are the same. (The address alone would be the same in the next round
  /// of a loop. An instruction with a `rep` prefix goes on where it faulted; the part that it has
  /// done is not done again.)
  void fault(page_number page, bool store, waiter fiber, bool again);
  /// The rank that is asked first for a page which is not here.
  int keeper(page_number page) { return protocol_of(page).keeper(page); }
  /// See page_protocol::is_untouched and restored.
  bool is_untouched(page_number page) { return protocol_of(page).is_untouched(page); }
  void restored(page_number page) { protocol_of(page).restored(page); }
  /// The instruction at which the fiber faulted last has run, so pages that stayed here for it may
  /// leave. To be called as soon as the rank sees that the fiber has gone on: when it enters the
  /// runtime other than by a fault, or when a doorbell interrupts it at another instruction. It
  /// must be called before the fiber ends or leaves the rank. If no page stays for the fiber, it
  /// does nothing.
  void ran(waiter fiber);
  /// For a while no fiber except `but` runs, so pages that have come for other fibers may leave,
  /// and these fibers will fault again. To be called repeatedly until `but` runs, because more
  /// pages may come.
  void others_do_not_run(waiter but);
  /// Whether pages stay here until ran(fiber).
  bool keeps_pages_for(waiter fiber) const { return taken_.contains(fiber); }
  /// Pins a page: it stays here and allows `how` until unpin() has been called as often. Returns
  /// false if the page is not here; a fault() for the access to_pin(page, how) brings it. A caller
  /// that pins several pages pins them in ascending order, because other ranks may wait for them.
  bool pin(page_number page, access how);
  access to_pin(page_number page, access how) { return protocol_of(page).to_pin(how); }
  void unpin(page_number page, access how);
  bool any_pinned() const { return pins_.any(); }
  /// See lmw::lacking_pinned.
  const page_number* lacking_pinned() const;
  /// What the program may do with a page now.
  access allowed(page_number page) const { return table_[page].common.shown; }

  /// See class locks.
  bool take_lock(lock_number lock, waiter fiber);
  bool try_lock(lock_number lock, waiter fiber);
  void release_lock(lock_number lock, bool fair);
  waiter lock_holder(lock_number lock) { return locks_.holder(lock); }
  bool lock_is_here(lock_number lock) { return locks_.is_here(lock); }
  template <class Gone>
  void give_up_locks(Gone gone) {
    locks_.give_up(gone);
  }
  bool any_lock_in_use() const { return locks_.any_in_use(); }
  bool others_turn(lock_number lock, bool fair) { return locks_.others_turn(lock, fair); }

  /// See class events.
  event_answer ask(const event_question& q, waiter fiber);
  int home_of(const event_question& q) const { return events_.home(q.object, q.what); }
  template <class Gone>
  void give_up_events(Gone gone) {
    events_.give_up(gone);
  }
  bool any_event_waits() const { return events_.any_waits(); }
  bool forget_events(object_number begin, object_number end) { return events_.forget(begin, end); }
  template <class Visit>
  void each_event_value(Visit visit) const {
    events_.each_value(visit);
  }
  void restored_event(object_number object, std::uint64_t value) {
    events_.restored(object, value);
  }

  /// See class barriers.
  void set_members(std::uint32_t all);
  void fiber_came();
  void fiber_went();
  void arrive(bool guest);
  void complete_for_others() { barriers_.complete_for_others(); }
  std::uint32_t arrived() const { return barriers_.arrived(); }
  std::uint32_t guests_arrived() const { return barriers_.guests_arrived(); }
  bool last_barrier_was_incomplete() const { return barriers_.was_incomplete(); }

  /// To be called before a message goes to a rank that lets a fiber go on there: a release here,
  /// and an acquire there. Returns the bytes of a message that must be sent before it, and that the
  /// other rank hands to receive(); or nothing. Valid until any other function is called.
  std::span<const std::byte> news_for(int to, ordered_with with);
  /// What news_for() has returned was sent.
  void news_sent(int to, ordered_with with) {
    count_message(0);
    news_.told(to, with);
  }
  std::uint32_t current_epoch() const { return epoch; }
  /// False right after a barrier, while this rank and others exchange pages that they will want.
  bool is_at_ease() const { return lmw_.is_at_ease(); }
  /// Makes is_at_ease() true until the next barrier.
  void end_exchange() { lmw_.end_exchange(); }

  /// A message has come. Its bytes are no longer needed afterwards.
  void receive(int from, std::span<const std::byte> bytes);
  /// Whether messages wait that come from behind a barrier which this rank has not left.
  bool holds_messages() const { return held_count_ != 0; }

 private:
  /// A page that stays until an instruction has run.
  struct taken_page {
    page_number page;
    bool held;
  };

  void close() override;
  void tell(int to) override;
  void learn(page_message_reader& from, std::span<const interval> like) override;
  void handle_own(std::span<const std::byte> back) override;

  void handle(int from, std::span<const std::byte> bytes);
  void handle_held();
  void finish();
  void show();
  page_protocol& protocol_of(page_number page) {
    return *protocols_[static_cast<std::size_t>(layout.protocol_of(page))];
  }
  bool take(page_number page, waiter fiber);
  void end_instruction(waiter fiber);
  void give_up(taken_page t);
  void set_pinned(page_number page, access to);

  using held_messages = std::pmr::deque<std::pmr::vector<std::byte>>;

  page_table table_;
  lmw lmw_;
  lsw lsw_;
  seq seq_;
  const std::array<page_protocol*, protocol_kinds> protocols_;  ///< By protocol.
  interval_pages closing_;                                      ///< Scratch.
  std::pmr::vector<std::byte> own_message_;  ///< Room for a message to this rank itself.
  /// By fiber: the pages that stay for its instruction, in ascending order.
  std::pmr::unordered_map<waiter, std::pmr::vector<taken_page>> taken_;
  pins pins_;
  locks locks_;
  barriers barriers_;
  events events_;
  news news_;
  std::pmr::vector<held_messages> held_;  ///< By rank: its messages that wait, in order.
  std::size_t held_count_ = 0;
};

}  // namespace sojourn::detail::pages
