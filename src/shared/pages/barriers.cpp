// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/barriers.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

namespace {

// Flags of an arrival.
constexpr std::uint8_t first_of_rank = 1;
constexpr std::uint8_t without_fibers = 2;
constexpr std::uint8_t wants_to_collect = 4;
/// The arrival answers asks_for_more(): no fibers arrive with it.
constexpr std::uint8_t with_all_records = 8;
// Flags of a departure.
constexpr std::uint8_t collects = 1;
constexpr std::uint8_t only_collects = 2;
/// Used in last_departure() alone: this rank entered its epoch by the end of a collection.
constexpr std::uint8_t ends_collection = 4;
constexpr std::uint8_t is_incomplete = 8;

}  // namespace

barriers::barriers(exchange& x, lmw& protocol, int fan_out, std::size_t collect_bytes)
    : x_(x),
      lmw_(protocol),
      fan_out_(fan_out),
      collect_bytes_(collect_bytes),
      collect_from_(collect_bytes),
      told_known_(x.barrier, x.host.memory()),
      arrivals_(x.host.memory()),
      kept_(x.host.memory()),
      mentioned_(x.barrier, x.host.memory()),
      covered_(x.barrier, x.host.memory()) {
  if (x_.me != 0) return;
  for (int r = 0; r < x_.ranks; ++r) arrivals_.emplace_back(x_.host.memory());
}

void barriers::arrive(bool guest) {
  ++arrived_;
  guests_arrived_ += guest ? 1 : 0;
  look_again();
}

void barriers::look_again() {
  if (collecting_ == phase::validating && !lmw_.fetches_in_progress()) {
    collecting_ = phase::done;
    lmw_.stop_fetching();
    x_.begin({.what = page_message::collect_done});
    x_.send(0);
  }
  if (collecting_ != phase::none || lmw_.must_fetch()) return;
  if (asked_to_collect_) {
    asked_to_collect_ = false;
    send_arrival(true);
  }
  // This rank arrives when all fibers that are expected here have arrived; without such fibers, at
  // once.
  const bool news = !told_any_ || arrived_ != told_;
  if (members_ != 0 && arrived_ >= here_ && news) send_arrival(false);
  if (!wanted_ && wants_collection()) ask_for_collection();
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
    if (wants_collection() || x_.report != nullptr) head.flag |= wants_to_collect;
  }
  // Includes records of this rank alone: those of other ranks come to rank 0 with their own
  // arrivals.
  const auto me = static_cast<std::size_t>(x_.me);
  const interval own = told_known_[me];
  told_known_ = x_.log.known();
  vector_clock base(told_known_, x_.host.memory());
  base[me] = own;
  message_writer& out = x_.begin(head);
  out.put_clock(told_known_, x_.barrier);
  x_.log.write(out, base, told_known_, x_.barrier);
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
  // An arrival from an earlier epoch was sent before its rank left to collect; that rank arrives
  // again.
  if (head.epoch != x_.epoch) return;
  const bool has_all = (head.flag & with_all_records) != 0;
  from.require(!has_all || r.asked_for_all, "tells all that it knows without being asked");
  r.knows.resize(static_cast<std::size_t>(x_.ranks));
  from.take_clock(r.knows, x_.barrier);
  x_.log.check_clock(from, r.knows);
  take_later(mentioned_, r.knows);
  const auto sender = static_cast<std::size_t>(from.from());
  if (has_all)
    take_later(covered_, r.knows);
  else
    covered_[sender] = std::max(covered_[sender], r.knows[sender]);
  // This rank learns the records only when all ranks have arrived. If it did so now, pages would
  // become stale that its fibers still use, and would fetch again at once.
  kept_.push_back({from.from(), {from.rest().begin(), from.rest().end(), x_.host.memory()}});
  if (has_all) {
    r.asked_for_all = false;
  } else if ((head.flag & without_fibers) != 0) {
    from.require(collection_asked_ && !r.to_collect, "arrives for a collection twice");
    r.to_collect = true;
    ++ranks_to_collect_;
  } else {
    from.require(((head.flag & first_of_rank) != 0) != r.here, "arrives at a barrier twice");
    from.require(head.number <= members_ - fibers_arrived_, "arrives with too many fibers");
    from.require(head.number != 0 || !r.here, "arrives again without more fibers");
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
    // The ranks were asked for a collection: a barrier of the program waits until that has ended.
    if (ranks_to_collect_ == all && !asks_for_more()) send_departures(true, true);
    return;
  }
  if (ranks_arrived_ == all && fibers_arrived_ == members_ && members_ != 0 && !asks_for_more())
    send_departures(false, collection_wanted_);
}

/// A rank that has arrived may go on closing intervals, and other ranks that arrive later may know
/// of these. In that rare case rank 0 asks the later ranks for all records that they know. Returns
/// true while their answers are missing.
bool barriers::asks_for_more() {
  if (!holds(rule::ask_for_what_others_know)) return false;
  take_later(covered_, x_.log.known());
  const auto is_covered = [&](const vector_clock& clock) {
    for (std::size_t q = 0; q < clock.size(); ++q)
      if (clock[q] > covered_[q]) return false;
    return true;
  };
  if (is_covered(mentioned_)) return false;
  bool waits = false;
  for (int rank = 0; rank < x_.ranks; ++rank) {
    rank_arrival& r = arrivals_[static_cast<std::size_t>(rank)];
    if (is_covered(r.knows)) continue;
    waits = true;
    if (std::exchange(r.asked_for_all, true)) continue;
    x_.begin({.what = page_message::arrive_with_all});
    x_.send(rank);
  }
  return waits;
}

void barriers::left() {
  --members_;
  not_all_meet_ = true;
  depart_when_all_are_here();
}

void barriers::send_departures(bool to_collect, bool collect) {
  fibers_arrived_ = ranks_arrived_ = ranks_to_collect_ = 0;
  for (rank_arrival& r : arrivals_) r.here = r.to_collect = r.asked_for_all = false;
  collection_asked_ = collection_wanted_ = false;
  collection_running_ = collect;
  // This rank learns what the arrivals of all ranks have told.
  for (const kept_records& k : kept_) {
    page_message_reader records(x_.host, k.from, k.bytes);
    x_.learn(records, x_.barrier);
  }
  kept_.clear();
  x_.close();
  const vector_clock& all = x_.log.known();
  mentioned_ = covered_ = all;
  message_head head{.what = page_message::departure};
  head.flag =
      static_cast<std::uint8_t>((collect ? collects : 0) | (to_collect ? only_collects : 0));
  if (!to_collect && std::exchange(not_all_meet_, false)) head.flag |= is_incomplete;
  // A rank passes its departure on, so it is sent all that it or any rank below it in the tree
  // lacks.
  const auto knows = [&](int rank) -> vector_clock& {
    return arrivals_[static_cast<std::size_t>(rank)].knows;
  };
  for (int r = x_.ranks - 1; parent(r) != 0; --r)
    for (std::size_t q = 0; q < all.size(); ++q)
      knows(parent(r))[q] = std::min(knows(parent(r))[q], knows(r)[q]);
  const auto send_to = [&](int r) {
    message_writer& out = x_.begin(head);
    out.put_clock(all, x_.barrier);
    x_.log.write(out, knows(r), all, x_.barrier);
    x_.send(r);
  };
  each_child(send_to);
  knows(0) = all;
  send_to(0);
}

/// Calls visit(rank) for the ranks to which this rank passes departures on, the last one first.
template <class Visit>
void barriers::each_child(Visit visit) const {
  const std::int64_t first = std::int64_t{x_.me} * fan_out_ + 1;
  for (std::int64_t r = std::min<std::int64_t>(first + fan_out_, x_.ranks) - 1; r >= first; --r)
    visit(static_cast<int>(r));
}

// --- every rank

void barriers::check_departure(const page_message_reader& from, const vector_clock& all) const {
  for (std::size_t q = 0; q < all.size(); ++q)
    from.require(all[q] >= x_.barrier[q] && all[q] <= x_.log.known()[q],
                 "names intervals that are not known");
}

void barriers::departure_came(page_message_reader& from, const message_head& head) {
  // If this rank has departed early, it knows the content of this departure already, and has passed
  // it on.
  if (head.epoch != x_.epoch) return;
  if (x_.me != 0)
    each_child([&](int r) {
      x_.out.begin(head);
      x_.out.put_bytes(from.rest().data(), from.rest().size());
      x_.send(r);
    });
  vector_clock all(x_.barrier, x_.host.memory());
  from.take_clock(all, x_.barrier);
  x_.close();
  x_.learn(from, x_.barrier);
  depart(from, all, head.flag);
}

/// Requires: this rank has learned everything that the message tells.
void barriers::depart(page_message_reader& from, const vector_clock& all, std::uint8_t how) {
  check_departure(from, all);
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
  // If fibers here wait at a barrier of the program, this rank arrives again, because it may have
  // closed other intervals since.
  told_ = 0;
  told_any_ = false;
  told_known_ = x_.barrier;
  lmw_.departed();
  if ((how & collects) != 0) {
    ++x_.counts->collections;
    collecting_ = phase::validating;
    lmw_.begin_collection();
    return;
  }
  lmw_.fetch_what_must();
  lmw_.fetch_ahead();
  leave();
}

void barriers::end_collection(page_message_reader& from) {
  from.require(collecting_ == phase::done, "ends a collection that is not under way");
  collecting_ = phase::none;
  ++x_.epoch;
  last_departure_ = ends_collection;
  if (x_.report != nullptr) x_.report->forget_diffs();
  lmw_.end_collection();
  x_.log.collect(x_.barrier);
  // What is left now could not be given back, so collecting it again at once would be of no use.
  const std::size_t room = std::numeric_limits<std::size_t>::max() - collect_bytes_;
  collect_from_ = collect_bytes_ + std::min(room, collectable_bytes());
  leave();
}

void barriers::depart_early(page_message_reader& from, const vector_clock& all, std::uint8_t how) {
  if (how == ends_collection) return end_collection(from);
  check_departure(from, all);
  // The departure itself is handled when this rank looks at messages again, but ranks below it in
  // the tree wait for it now. This rank does not know what they lack, except that they know what
  // all ranks knew at the last barrier.
  each_child([&](int r) {
    message_writer& out = x_.begin({.what = page_message::departure, .flag = how});
    out.put_clock(all, x_.barrier);
    x_.log.write(out, x_.barrier, all, x_.barrier);
    x_.send(r);
  });
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
  const bool down_the_tree = head.what == page_message::departure;
  from.require(to_rank_0       ? x_.me == 0
               : down_the_tree ? from.from() == parent(x_.me)
                               : from.from() == 0,
               "is for another rank");
  switch (head.what) {
    case page_message::arrival:
      return at_rank_0(from, head);
    case page_message::arrive_with_all: {
      if (head.epoch != x_.epoch) return;
      // Tells what this rank knew when it arrived, and no more: only that happened before the
      // intervals that it has told of.
      message_writer& out = x_.begin({.what = page_message::arrival, .flag = with_all_records});
      out.put_clock(told_known_, x_.barrier);
      x_.log.write(out, x_.barrier, told_known_, x_.barrier);
      return x_.send(0);
    }
    case page_message::departure:
      return departure_came(from, head);
    case page_message::collect_wanted:
      // The ranks may be at a barrier already at which they collect.
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
      from.require(collection_running_ && head.epoch == x_.epoch &&
                       !arrivals_[static_cast<std::size_t>(from.from())].done,
                   "has nothing more to fetch for a collection that is not under way");
      arrivals_[static_cast<std::size_t>(from.from())].done = true;
      if (++done_ != static_cast<std::uint32_t>(x_.ranks)) return;
      done_ = 0;
      for (rank_arrival& r : arrivals_) r.done = false;
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
