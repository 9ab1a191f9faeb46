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
  /// What a rank keeps of changes, beyond what the last collection has left, begins a collection.
  /// Requires: room for the twins of any instruction, which a collection takes away; else it might
  /// never run.
  std::size_t collect_bytes = std::size_t{64} << 20;
  /// To how many others a rank passes the departure from a barrier on: with as few ranks as most
  /// jobs have, it comes from rank 0. Requires: at least 1.
  int fan_out = 16;
  /// Where to count; null: nowhere that anybody looks.
  sojourn::shared::counters* counts = nullptr;
  /// See exchange.
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
  /// services::wake_page; in both cases it executes its instruction again.
  /// `again`: this instruction of the fiber's has faulted before, and not run since: address and
  /// general registers are those of the fiber's last fault. (The address alone is that of the next
  /// round of a loop, too. An instruction with `rep` counts on: what it has done, it has done.)
  void fault(page_number page, bool store, waiter fiber, bool again);
  /// The rank that is asked first for a page which is not here.
  int keeper(page_number page) { return protocol_of(page).keeper(page); }
  /// See page_protocol.
  bool is_untouched(page_number page) { return protocol_of(page).is_untouched(page); }
  void restored(page_number page) { protocol_of(page).restored(page); }
  /// The instruction at which the fiber faulted last has run: pages that stayed here for it may
  /// leave. To be called as soon as the rank sees that the fiber is elsewhere: when it enters the
  /// runtime other than by a fault, or a doorbell interrupts it at another instruction. Before the
  /// fiber ends or leaves the rank it must be called; where nothing stays, it does nothing.
  void ran(waiter fiber);
  /// For a while no fiber but `but` runs: pages that have come for other fibers may leave, and
  /// those fibers fault again. To be called until `but` runs, for more pages may come.
  void others_do_not_run(waiter but);
  /// Whether pages stay here until ran(fiber).
  bool keeps_pages_for(waiter fiber) const { return taken_.contains(fiber); }
  /// Pins a page: it stays here and allows `how` until unpin() is called as often. False: the page
  /// is not here; fault(), for what to_pin() says, brings it. Whoever pins several pages pins them
  /// in ascending order, because other ranks may wait for them.
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

  /// A message that lets a fiber go on is about to go to a rank: a release here, and an acquire
  /// there. Returns what must be sent before it, to be handed to receive(); or nothing. Valid until
  /// anything else is called.
  std::span<const std::byte> news_for(int to, ordered_with with);
  /// What news_for() has returned was sent.
  void news_sent(int to, ordered_with with) {
    count_message(0);
    news_.told(to, with);
  }
  std::uint32_t current_epoch() const { return epoch; }
  /// False right after a barrier, as long as this rank and others exchange what they will want.
  bool is_at_ease() const { return lmw_.is_at_ease(); }
  /// Until the next barrier, is_at_ease().
  void end_exchange() { lmw_.end_exchange(); }

  /// A message has come. Its bytes are no longer needed afterwards.
  void receive(int from, std::span<const std::byte> bytes);
  /// Whether messages have come from behind a barrier that this rank has not left.
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
  const std::array<page_protocol*, protocol_kinds> protocols_;  ///< By kind.
  interval_pages closing_;                                      ///< Scratch.
  std::pmr::vector<std::byte> own_message_;  ///< Room for a message to this rank itself.
  /// By the fibers whose instructions these are; in ascending order.
  std::pmr::unordered_map<waiter, std::pmr::vector<taken_page>> taken_;
  pins pins_;
  locks locks_;
  barriers barriers_;
  events events_;
  news news_;
  std::pmr::vector<held_messages> held_;  ///< Of each rank, in order.
  std::size_t held_count_ = 0;
};

}  // namespace sojourn::detail::pages
