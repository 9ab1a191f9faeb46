// SPDX-License-Identifier: Apache-2.0
// The shared memory of one rank, without what the rank itself does for it (services): its pages,
// locks and barriers, and the messages about them. One rank is one memory: its fibers see each
// other's stores at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>

#include "shared/barriers.hpp"
#include "shared/exchange.hpp"
#include "shared/lmw.hpp"
#include "shared/locks.hpp"

namespace sojourn::detail::pages {

struct rank_pages_settings {
  lmw::settings protocol;
  /// Diffs and notices of a rank that begin a collection.
  std::size_t collect_bytes = std::size_t{64} << 20;
};

class rank_pages final : exchange, barrier_hooks {
 public:
  /// `table` has a zeroed entry for each page of the region.
  rank_pages(services& host, int me, int ranks, std::span<lmw_page> table,
             const rank_pages_settings& s);
  ~rank_pages() override;

  /// A fiber has faulted on a page. Either it may go on when this returns, or it waits until
  /// services::wake_page; in both cases it executes its instruction again.
  void fault(page_number page, bool store);
  /// What the program may do with a page now.
  access allowed(page_number page) const { return table_[page].shown; }

  /// See class locks.
  bool take_lock(lock_number l, waiter fiber);
  bool try_lock(lock_number l, waiter fiber);
  void release_lock(lock_number l, bool fair);
  waiter lock_holder(lock_number l) { return locks_.holder(l); }

  /// See class barriers.
  void set_members(std::uint32_t all);
  void fiber_came();
  void fiber_went();
  void arrive();

  /// A release: what this rank stored and knows, for a message that lets a fiber go on elsewhere.
  /// `theirs`: what that rank surely knows.
  void write_news(message_writer& to, std::span<const interval> theirs);
  /// The matching acquire.
  void read_news(int from, std::span<const std::byte> bytes);
  /// What every rank knows that has left the barriers that this rank has left.
  const vector_clock& known_to_all() const { return log.collected(); }
  std::uint32_t current_epoch() const { return epoch; }

  /// A message has come. Its bytes are no longer needed afterwards.
  void receive(int from, std::span<const std::byte> bytes);
  /// Messages from behind a barrier that this rank has not left.
  bool holds_messages() const { return held_count_ != 0; }

 private:
  void close() override;
  void learn(page_message_reader& from) override;
  void handle_own(std::span<const std::byte> back) override;
  void departed() override { lmw_.find_exclusive(); }
  bool must_fetch() override { return lmw_.must_fetch(); }
  void fetch_what_must() override { lmw_.fetch_what_must(); }
  void begin_collection() override { lmw_.begin_collection(); }
  bool fetches_in_progress() override { return lmw_.fetches_in_progress(); }
  void stop_fetching() override { lmw_.stop_fetching(); }
  void end_collection() override;
  bool wants_collection() override { return collectable_bytes() > collect_from_; }

  void handle(int from, std::span<const std::byte> bytes);
  void handle_held();
  void finish();
  std::size_t collectable_bytes() const { return lmw_.collectable_bytes() + log.bytes(); }

  using held_messages = std::pmr::deque<std::pmr::vector<std::byte>>;

  const rank_pages_settings settings_;
  std::span<lmw_page> table_;
  lmw lmw_;
  locks locks_;
  barriers barriers_;
  std::pmr::vector<held_messages> held_;  ///< Of each rank, in order.
  std::size_t held_count_ = 0;
  std::size_t collect_from_;  ///< More bytes than these begin a collection.
};

}  // namespace sojourn::detail::pages
