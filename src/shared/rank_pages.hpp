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

#include "shared/barriers.hpp"
#include "shared/exchange.hpp"
#include "shared/lmw.hpp"
#include "shared/locks.hpp"
#include "shared/lsw.hpp"
#include "shared/news.hpp"
#include "shared/page_table.hpp"
#include "shared/seq.hpp"

namespace sojourn::detail::pages {

struct rank_pages_settings {
  lmw::settings protocol;
  /// Diffs, twins and notices of a rank that begin a collection. Requires: room for the twins of
  /// any instruction, which a collection takes away; else it might never run.
  std::size_t collect_bytes = std::size_t{64} << 20;
  /// Where to count; null: nowhere that anybody looks.
  sojourn::shared::counters* counts = nullptr;
  /// See exchange.
  page_report* report = nullptr;
};

class rank_pages final : exchange, barrier_hooks {
 public:
  /// `table` has a zeroed entry for each page of the region.
  rank_pages(services& host, int me, int ranks, std::span<page_entry> table,
             const rank_pages_settings& s);
  ~rank_pages() override;

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
  /// Whether pages stay here until ran(fiber).
  bool keeps_pages_for(waiter fiber) const { return taken_.contains(fiber); }
  /// What the program may do with a page now.
  access allowed(page_number page) const { return table_[page].common.shown; }

  /// See class locks.
  bool take_lock(lock_number l, waiter fiber);
  bool try_lock(lock_number l, waiter fiber);
  void release_lock(lock_number l, bool fair);
  waiter lock_holder(lock_number l) { return locks_.holder(l); }
  bool lock_is_here(lock_number l) { return locks_.is_here(l); }
  template <class Gone>
  void give_up_locks(Gone gone) {
    locks_.give_up(gone);
  }
  bool any_lock_in_use() const { return locks_.any_in_use(); }

  /// See class barriers.
  void set_members(std::uint32_t all);
  void fiber_came();
  void fiber_went();
  void arrive(bool guest);

  /// A message that lets a fiber go on is about to go to a rank: a release here, and an acquire
  /// there. What must be sent that way first, to be handed to receive(); or nothing. Valid until
  /// anything else is called.
  std::span<const std::byte> news_for(int to, way w);
  /// That was sent.
  void news_sent(int to, way w) {
    count_message(0);
    news_.told(to, w);
  }
  std::uint32_t current_epoch() const { return epoch; }

  /// A message has come. Its bytes are no longer needed afterwards.
  void receive(int from, std::span<const std::byte> bytes);
  /// Messages from behind a barrier that this rank has not left.
  bool holds_messages() const { return held_count_ != 0; }

 private:
  /// A page that stays until an instruction has run.
  struct taken_page {
    page_number page;
    bool held;
  };

  void close() override;
  void learn(page_message_reader& from) override;
  void handle_own(std::span<const std::byte> back) override;
  void departed() override;
  bool must_fetch() override;
  void fetch_what_must() override;
  void begin_collection() override;
  bool fetches_in_progress() override;
  void stop_fetching() override;
  void end_collection() override;
  bool wants_collection() override { return collectable_bytes() > collect_from_; }

  void handle(int from, std::span<const std::byte> bytes);
  void handle_held();
  void finish();
  void show();
  std::size_t collectable_bytes() const;
  page_protocol& protocol(protocol_kind kind) {
    return *protocols_[static_cast<std::size_t>(kind)];
  }
  page_protocol& protocol_of(page_number page) { return protocol(host.protocol_of(page)); }
  bool take(page_number page, waiter fiber);
  void end_instruction(waiter fiber);
  void give_up(taken_page t);

  using held_messages = std::pmr::deque<std::pmr::vector<std::byte>>;

  const rank_pages_settings settings_;
  page_table table_;
  lmw lmw_;
  lsw lsw_;
  seq seq_;
  const std::array<page_protocol*, protocol_kinds> protocols_;  ///< By kind.
  interval_pages closing_;                                      ///< Scratch.
  /// By the fibers whose instructions these are; in ascending order.
  std::pmr::unordered_map<waiter, std::pmr::vector<taken_page>> taken_;
  locks locks_;
  barriers barriers_;
  news news_;
  std::pmr::vector<held_messages> held_;  ///< Of each rank, in order.
  std::size_t held_count_ = 0;
  std::size_t collect_from_;  ///< More bytes than these begin a collection.
};

}  // namespace sojourn::detail::pages
