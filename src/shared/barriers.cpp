// SPDX-License-Identifier: Apache-2.0
#include "shared/barriers.hpp"

#include <utility>
#include <vector>

#include "base/check.hpp"

namespace sojourn::detail::pages {

namespace {

// Flags of an arrival.
constexpr std::uint8_t first_of_rank = 1;
constexpr std::uint8_t without_fibers = 2;
constexpr std::uint8_t wants_to_collect = 4;
// Flags of a departure.
constexpr std::uint8_t collects = 1;
constexpr std::uint8_t only_collects = 2;
/// Not a departure at all (last_departure()).
constexpr std::uint8_t ends_collection = 4;
constexpr std::uint8_t is_incomplete = 8;

}  // namespace

barriers::barriers(exchange& x, barrier_hooks& hooks)
    : x_(x), hooks_(hooks), arrivals_(x.host.memory()) {
  if (x_.me != 0) return;
  for (int r = 0; r < x_.ranks; ++r) arrivals_.emplace_back(x_.host.memory());
}

void barriers::arrive(bool guest) {
  ++arrived_;
  guests_arrived_ += guest ? 1 : 0;
  look_again();
}

void barriers::look_again() {
  if (collecting_ == phase::validating && !hooks_.fetches_in_progress()) {
    collecting_ = phase::done;
    hooks_.stop_fetching();
    x_.begin({.what = page_message::collect_done});
    x_.send(0);
  }
  if (collecting_ != phase::none || hooks_.must_fetch()) return;
  if (asked_to_collect_) {
    asked_to_collect_ = false;
    send_arrival(true);
  }
  // The fibers that are here have arrived; a rank without fibers arrives at once.
  const bool news = !told_any_ || arrived_ != told_;
  if (members_ != 0 && arrived_ >= here_ && news) send_arrival(false);
  if (!wanted_ && hooks_.wants_collection()) ask_for_collection();
}

void barriers::send_arrival(bool to_collect) {
  x_.close();
  message_head head{.what = page_message::arrival};
  if (to_collect) {
    head.flag = without_fibers;
  } else {
    head.flag = told_any_ ? 0 : first_of_rank;
    head.number = arrived_ - told_;
    told_ = arrived_;
    told_any_ = true;
    if (hooks_.wants_collection() || x_.report != nullptr) head.flag |= wants_to_collect;
  }
  message_writer& out = x_.begin(head);
  out.put_clock(x_.log.known());
  // Rank 0 knows at least what all knew behind the last barrier.
  x_.log.write(out, x_.barrier, x_.log.known());
  x_.send(0);
}

void barriers::ask_for_collection() {
  wanted_ = true;
  x_.begin({.what = page_message::collect_wanted});
  x_.send(0);
}

// --- rank 0

void barriers::at_rank_0(page_message_reader& from, const message_head& head) {
  rank_arrival& r = arrivals_[static_cast<std::size_t>(from.from())];
  r.knows.resize(static_cast<std::size_t>(x_.ranks));
  from.take_clock(r.knows);
  x_.learn(from);
  // Sent before that rank left to collect: it arrives again, with what it has then.
  if (head.epoch != x_.epoch) return;
  if ((head.flag & without_fibers) != 0) {
    from.require(collection_asked_ && !r.to_collect, "arrives for a collection twice");
    r.to_collect = true;
    ++ranks_to_collect_;
  } else {
    from.require(((head.flag & first_of_rank) != 0) != r.here, "arrives at a barrier twice");
    from.require(head.number <= members_ - fibers_arrived_, "arrives with too many fibers");
    if (!r.here) ++ranks_arrived_;
    r.here = true;
    fibers_arrived_ += head.number;
    if ((head.flag & wants_to_collect) != 0) collection_wanted_ = true;
  }
  depart_when_all_are_here();
}

void barriers::depart_when_all_are_here() {
  if (collection_running_) return;
  const auto all = static_cast<std::uint32_t>(x_.ranks);
  if (collection_asked_) {
    // A barrier of the program waits until the collection has ended.
    if (ranks_to_collect_ == all) send_departures(true, true);
    return;
  }
  if (ranks_arrived_ == all && fibers_arrived_ == members_ && members_ != 0)
    send_departures(false, collection_wanted_);
}

void barriers::left() {
  --members_;
  not_all_meet_ = true;
  depart_when_all_are_here();
}

void barriers::send_departures(bool to_collect, bool collect) {
  fibers_arrived_ = ranks_arrived_ = ranks_to_collect_ = 0;
  for (rank_arrival& r : arrivals_) r.here = r.to_collect = false;
  collection_asked_ = collection_wanted_ = false;
  collection_running_ = collect;
  // What all of them know: this rank has learned it from their arrivals.
  x_.close();
  const vector_clock& all = x_.log.known();
  message_head head{.what = page_message::departure};
  head.flag =
      static_cast<std::uint8_t>((collect ? collects : 0) | (to_collect ? only_collects : 0));
  if (!to_collect && std::exchange(not_all_meet_, false)) head.flag |= is_incomplete;
  for (int r = x_.ranks - 1; r >= 0; --r) {
    message_writer& out = x_.begin(head);
    out.put_clock(all);
    x_.log.write(out, arrivals_[static_cast<std::size_t>(r)].knows, all);
    x_.send(r);
  }
}

// --- every rank

/// Requires: everything that this rank was told on the way has been learned.
void barriers::depart(page_message_reader& from, const vector_clock& all, std::uint8_t how) {
  for (std::size_t q = 0; q < all.size(); ++q)
    from.require(all[q] >= x_.barrier[q] && all[q] <= x_.log.known()[q],
                 "names intervals that are not known");
  ++x_.epoch;
  x_.previous_barrier = x_.barrier;
  x_.barrier = all;
  last_departure_ = how;
  leaves_barrier_ = (how & only_collects) == 0;
  if (leaves_barrier_) {
    here_ = arrived_ - guests_arrived_;
    arrived_ = guests_arrived_ = 0;
    was_incomplete_ = (how & is_incomplete) != 0;
  }
  // Where fibers wait for a barrier of the program, this rank arrives there anew: what it has is
  // not what it had.
  told_ = 0;
  told_any_ = false;
  hooks_.departed();
  if ((how & collects) != 0) {
    ++x_.counts->collections;
    collecting_ = phase::validating;
    hooks_.begin_collection();
    return;
  }
  hooks_.fetch_what_must();
  hooks_.fetch_ahead();
  leave();
}

void barriers::end_collection(page_message_reader& from) {
  from.require(collecting_ == phase::done, "ends a collection that is not under way");
  collecting_ = phase::none;
  ++x_.epoch;
  last_departure_ = ends_collection;
  hooks_.end_collection();
  leave();
}

void barriers::depart_early(page_message_reader& from, const vector_clock& all, std::uint8_t how) {
  if (how == ends_collection) return end_collection(from);
  x_.close();
  depart(from, all, how);
}

const vector_clock& barriers::known_to_who_lags() const {
  return last_departure_ == ends_collection ? x_.barrier : x_.previous_barrier;
}

void barriers::leave() {
  wanted_ = false;
  if (!leaves_barrier_) return;
  ++x_.counts->barriers;
  x_.host.wake_barrier();
}

void barriers::receive(page_message_reader& from, const message_head& head) {
  const bool to_rank_0 = head.what == page_message::arrival ||
                         head.what == page_message::collect_wanted ||
                         head.what == page_message::collect_done;
  from.require(to_rank_0 ? x_.me == 0 : from.from() == 0, "is for another rank");
  switch (head.what) {
    case page_message::arrival:
      return at_rank_0(from, head);
    case page_message::departure: {
      vector_clock all(static_cast<std::size_t>(x_.ranks), 0, x_.host.memory());
      from.take_clock(all);
      x_.close();
      x_.learn(from);
      if (head.epoch == x_.epoch) depart(from, all, head.flag);
      return;
    }
    case page_message::collect_wanted:
      // A barrier at which it collects may be under way already.
      if (collection_running_ || collection_asked_ || head.epoch < x_.epoch) return;
      collection_wanted_ = collection_asked_ = true;
      for (int r = x_.ranks - 1; r >= 0; --r) {
        x_.begin({.what = page_message::arrive_to_collect});
        x_.send(r);
      }
      return;
    case page_message::arrive_to_collect:
      asked_to_collect_ = true;
      return;
    case page_message::collect_done:
      if (++done_ != static_cast<std::uint32_t>(x_.ranks)) return;
      done_ = 0;
      for (int r = x_.ranks - 1; r >= 0; --r) {
        x_.begin({.what = page_message::collect_go});
        x_.send(r);
      }
      collection_running_ = false;
      return depart_when_all_are_here();
    case page_message::collect_go:
      if (head.epoch == x_.epoch) end_collection(from);
      return;
    default:
      from.refuse("is no message of barriers");
  }
}

}  // namespace sojourn::detail::pages
