// SPDX-License-Identifier: Apache-2.0
// Barriers, and the collections that happen at them. A rank arrives once all of its fibers that
// take part have arrived, and tells rank 0 how many these are. If more fibers come later (fibers
// move), it arrives again. Rank 0 waits for all fibers and all ranks.
//
// At a barrier each rank sends and receives bytes in proportion to the number of ranks: an arrival
// carries the intervals of its rank alone, and departures go down a tree. (If locks have told ranks
// of many intervals of other ranks, arrivals name these, too.) While a program has no barriers, the
// runtime has barriers of its own to collect diffs, at which ranks arrive without fibers.
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
  /// `protocol`: the only protocol for which barriers do more than exchange notices. `fan_out`: to
  /// how many other ranks a rank passes departures on. `collect_bytes`: a rank that keeps so many
  /// more bytes of changes than after the last collection begins another one.
  barriers(exchange& x, lmw& protocol, int fan_out, std::size_t collect_bytes);

  /// Sets how many fibers of the job take part. Called on all ranks alike, before the first of
  /// these fibers arrives. If the number changes later, rank 0 alone knows it.
  void set_members(std::uint32_t all) { members_ = all; }
  /// came(): a fiber that takes part begins on this rank. went(): such a fiber ends, or leaves for
  /// another rank, or may do so. If a rank expects too few fibers, it sends more messages, because
  /// it arrives again for each fiber that it did not expect. If it expects a fiber that is
  /// elsewhere, it waits for ever.
  void came() { ++here_; }
  void went() {
    if (here_ != 0) --here_;
  }

  // At rank 0: changes of the number of fibers that take part. Nobody leaves a barrier before all
  // of them have arrived. So a fiber that takes part and has not arrived may have others join, as
  // long as it waits for rank 0's answer.
  bool somebody_is_missing() const { return fibers_arrived_ < members_; }
  void joined(std::uint32_t more) {
    members_ += more;
    not_all_meet_ = false;
  }
  /// A fiber takes part no longer, and has not arrived.
  void left();
  /// Says that fibers will arrive in place of those that have not: see was_incomplete().
  void complete_for_others() { not_all_meet_ = true; }

  /// A fiber has arrived, and waits until services::wake_barrier. A guest is at home on another
  /// rank, where it may go on at any time, so it is not expected here at the next barrier.
  void arrive(bool guest);
  /// How many fibers have arrived here, guests among them.
  std::uint32_t arrived() const { return arrived_; }
  std::uint32_t guests_arrived() const { return guests_arrived_; }
  /// Whether, at the barrier that was left last, a fiber was missing that took part when the
  /// barrier before it was left, or when a fiber joined since. The same on all ranks.
  bool was_incomplete() const { return was_incomplete_; }
  /// Arrives at a barrier, or tells rank 0 that this rank has nothing more to fetch for a
  /// collection, if either has become possible. To be called after everything that may make it
  /// possible.
  void look_again();
  /// True while this rank and others are in the middle of a collection.
  bool collecting() const { return collecting_ != phase::none; }

  void receive(page_message_reader& from, const message_head& head);

  /// How this rank entered its epoch: sent, with exchange::barrier, to ranks that may not have
  /// entered it yet.
  std::uint8_t last_departure() const { return last_departure_; }
  /// What any rank knows, even one that has not left this rank's last barrier yet, or not ended its
  /// last collection.
  const vector_clock& known_to_who_lags() const;
  /// Enters the epoch of the rank `from`, by the departure or the end of a collection that its news
  /// contain. The message about it that comes from rank 0 later then does nothing.
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
    vector_clock knows;  ///< What the rank knew when it arrived last.
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
  /// How many bytes this rank keeps that a collection might give back in part.
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
  std::uint32_t told_ = 0;         ///< How many of the fibers in `arrived_` rank 0 knows of.
  bool told_any_ = false;          ///< Rank 0 knows that this rank has arrived.
  vector_clock told_known_;        ///< What rank 0 was told that this rank knows.
  bool asked_to_collect_ = false;  ///< Rank 0 wants an arrival without fibers.
  bool wanted_ = false;            ///< Rank 0 knows that this rank wants a collection.
  phase collecting_ = phase::none;
  std::uint8_t last_departure_ = 0;
  bool leaves_barrier_ = false;  ///< The last departure was from a barrier of the program.
  bool was_incomplete_ = false;

  // At rank 0.
  std::pmr::vector<rank_arrival> arrivals_;
  /// Records that came with an arrival. They are learned only when all ranks have arrived, so that
  /// no interval becomes known before an interval that happened before it.
  struct kept_records {
    int from;
    std::pmr::vector<std::byte> bytes;
  };
  std::pmr::vector<kept_records> kept_;
  vector_clock mentioned_;  ///< What the ranks that have arrived know, taken together.
  vector_clock covered_;    ///< This rank knows or keeps the records up to here.
  std::uint32_t fibers_arrived_ = 0;
  std::uint32_t ranks_arrived_ = 0;
  std::uint32_t ranks_to_collect_ = 0;
  std::uint32_t done_ = 0;
  bool collection_wanted_ = false;
  bool collection_asked_ = false;    ///< Ranks were asked to arrive without fibers.
  bool collection_running_ = false;  ///< Between the departure and the message `collect_go`.
  bool not_all_meet_ =
      false;  ///< At the next barrier a fiber will be missing: see was_incomplete().
};

}  // namespace sojourn::detail::pages
