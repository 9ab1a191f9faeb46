// SPDX-License-Identifier: Apache-2.0
// Barriers, and the collections that happen at them. A rank arrives once all fibers that are there
// and take part have arrived, with their number, and again when more come: fibers move. Rank 0
// waits for all fibers and all ranks.
//
// At a barrier each rank sends and receives bytes in proportion to the number of ranks: an arrival
// has the intervals of its rank alone, and a departure goes down a tree. (If locks have told
// ranks of many others' intervals, arrivals say so, too.) Barriers of the runtime's own collect
// diffs while a program has none: ranks then arrive without fibers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "shared/pages/exchange.hpp"
#include "shared/pages/lmw.hpp"

namespace sojourn::detail::pages {

class barriers {
 public:
  /// `protocol`: the only one for which barriers do more than to exchange notices.
  /// `fan_out`: to how many others a rank passes departures on.
  /// `collect_bytes`: what a rank keeps of changes, beyond what the last collection has left,
  /// begins a collection.
  barriers(exchange& x, lmw& protocol, int fan_out, std::size_t collect_bytes);

  /// How many fibers of the job take part; before the first of them arrives, on all ranks alike.
  /// Afterwards rank 0 alone knows when it changes.
  void set_members(std::uint32_t all) { members_ = all; }
  /// A fiber that takes part begins on this rank; ends, or leaves for another rank, or may do so.
  /// To expect too few fibers costs messages: a rank arrives again for each that it did not expect.
  /// A rank that expects a fiber which is elsewhere waits for ever.
  void came() { ++here_; }
  void went() {
    if (here_ != 0) --here_;
  }

  // At rank 0: the number of fibers that take part changes. While one of them has not arrived, none
  // leaves: so more may join as long as a fiber that takes part waits for the answer.
  bool somebody_is_missing() const { return fibers_arrived_ < members_; }
  void joined(std::uint32_t more) {
    members_ += more;
    not_all_meet_ = false;
  }
  /// A fiber that has not arrived never will.
  void left();
  /// Other fibers arrive for those that have not: see was_incomplete().
  void complete_for_others() { not_all_meet_ = true; }

  /// A fiber has arrived: it waits until services::wake_barrier. A guest is at home on another
  /// rank, where it may go on at any time; it is not expected here again.
  void arrive(bool guest);
  /// How many fibers have arrived here, guests among them.
  std::uint32_t arrived() const { return arrived_; }
  std::uint32_t guests_arrived() const { return guests_arrived_; }
  /// Of the barrier that was left last, on all ranks alike: not all fibers have met there that took
  /// part when the barrier before was left, or when one joined since.
  bool was_incomplete() const { return was_incomplete_; }
  /// Arrives at a barrier, or tells rank 0 that this rank fetches nothing any more for a
  /// collection, if either has become possible. Called after everything that may have made it
  /// possible.
  void look_again();
  /// True while this rank and others are in the middle of a collection.
  bool collecting() const { return collecting_ != phase::none; }

  void receive(page_message_reader& from, const message_head& head);

  /// What this rank departed by last, for one that may not have yet; with exchange::barrier.
  std::uint8_t last_departure() const { return last_departure_; }
  /// What a rank knows that has not left this rank's last barrier, or not ended its last
  /// collection.
  const vector_clock& known_to_who_lags() const;
  /// The departure, or the end of a collection, by which this rank enters the epoch of `from`. The
  /// same comes from rank 0, too, and then does nothing.
  void depart_early(page_message_reader& from, const vector_clock& all, std::uint8_t how);

 private:
  enum class phase : std::uint8_t { none, validating, done };
  /// What rank 0 knows of a rank that arrives.
  struct rank_arrival {
    explicit rank_arrival(std::pmr::memory_resource* memory) : knows(memory) {}
    bool here = false;
    bool to_collect = false;
    bool done = false;
    bool asked_for_all = false;
    vector_clock knows;  ///< What it knew when it arrived last.
  };

  void send_arrival(bool to_collect);
  void at_rank_0(page_message_reader& from, const message_head& head);
  void depart_when_all_are_here();
  bool asks_for_more();
  void check_departure(const page_message_reader& from, const vector_clock& all) const;
  void departure_came(page_message_reader& from, const message_head& head);
  template <class Visit>
  void each_child(Visit visit) const;
  int parent(int rank) const { return rank == 0 ? 0 : (rank - 1) / fan_out_; }
  void send_departures(bool to_collect, bool collect);
  void depart(page_message_reader& from, const vector_clock& all, std::uint8_t how);
  void end_collection(page_message_reader& from);
  void leave();
  void ask_for_collection();
  /// Bytes, some of which a collection would give back.
  std::size_t collectable_bytes() const { return x_.log.bytes() + lmw_.collectable_bytes(); }
  bool wants_collection() const { return collectable_bytes() > collect_from_; }

  exchange& x_;
  lmw& lmw_;
  const int fan_out_;
  const std::size_t collect_bytes_;
  std::size_t collect_from_;  ///< More bytes than these begin a collection.
  std::uint32_t members_ = 0;
  std::uint32_t here_ = 0;  ///< How many fibers are expected.
  std::uint32_t guests_arrived_ = 0;
  std::uint32_t arrived_ = 0;
  std::uint32_t told_ = 0;         ///< How many of these rank 0 knows of.
  bool told_any_ = false;          ///< Rank 0 knows that this rank has arrived.
  vector_clock told_known_;        ///< What it was told that this rank knows.
  bool asked_to_collect_ = false;  ///< Rank 0 wants an arrival without fibers.
  bool wanted_ = false;            ///< Rank 0 knows that this rank wants a collection.
  phase collecting_ = phase::none;
  std::uint8_t last_departure_ = 0;
  bool leaves_barrier_ = false;  ///< The collection is at a barrier of the program.
  bool was_incomplete_ = false;

  // At rank 0.
  std::pmr::vector<rank_arrival> arrivals_;
  /// Records that came with an arrival. They are learned when all ranks have arrived: so no
  /// interval comes to be known before those that happened before it.
  struct kept_records {
    int from;
    std::pmr::vector<std::byte> bytes;
  };
  std::pmr::vector<kept_records> kept_;
  vector_clock mentioned_;  ///< What any rank knows that has arrived.
  vector_clock covered_;    ///< Up to here this rank knows or keeps the records.
  std::uint32_t fibers_arrived_ = 0;
  std::uint32_t ranks_arrived_ = 0;
  std::uint32_t ranks_to_collect_ = 0;
  std::uint32_t done_ = 0;
  bool collection_wanted_ = false;
  bool collection_asked_ = false;    ///< Ranks were asked to arrive without fibers.
  bool collection_running_ = false;  ///< Between departure and go.
  bool not_all_meet_ = false;        ///< At the next barrier.
};

}  // namespace sojourn::detail::pages
