// SPDX-License-Identifier: Apache-2.0
// What happens to pages at barriers: those with one writer become exclusive, and diffs are
// collected. All ranks decide alike, without a message, because all know the same intervals up to
// the barrier.
#include "lmw.hpp"

#include <algorithm>

namespace page_model {

bool lmw_machine::may_arrive(int r) const {
  for (int g = 0; g < pages; ++g) {
    if (lmw_at(r, g).must_fetch) return false;
  }
  return true;
}

bool lmw_machine::depart(int r, const message& m) {
  rank_state& rank = s.rank[r];
  rank.previous_barrier_known = rank.barrier_known;
  rank.barrier_known = m.vector;
  for (int g = 0; g < pages; ++g) {
    if (const auto writer = last_writer(r, g, rank.previous_barrier_known))
      lmw_at(r, g).writer = to_small(*writer);
  }
  if (p_.has_exclusive) find_exclusive_pages(r);
  for (int g = 0; g < pages; ++g) {
    if (last_writer(r, g, rank.previous_barrier_known)) lmw_at(r, g).was_read = false;
  }
  if (m.collects) {
    begin_collection(r);
    return false;
  }
  fetch_what_must_be(r);
  return true;
}

/// The only rank that stored to the page in the epoch that has just ended, if no record says that
/// others read it.
std::optional<int> lmw_machine::only_writer(int r, int g) const {
  const rank_state& rank = s.rank[r];
  if (lmw_at(r, g).was_read && p_.readers_count && !keeps(rule::agree_on_readers))
    return std::nullopt;
  std::optional<int> writer;
  for (int q = 0; q < p_.ranks; ++q) {
    bool wrote = false;
    for (int i = rank.previous_barrier_known[q] + 1; i <= rank.barrier_known[q]; ++i) {
      wrote = wrote || stored_to(q, g, i);
      if (s.intervals[q][i].read.contains(g) && keeps(rule::agree_on_readers)) return std::nullopt;
    }
    if (wrote && writer) return std::nullopt;
    if (wrote) writer = q;
  }
  return writer;
}

/// Makes pages exclusive that have had one writer in this epoch, and drops copies of those that
/// have become so elsewhere (X2).
void lmw_machine::find_exclusive_pages(int r) {
  for (int g = 0; g < pages; ++g) {
    const std::optional<int> writer = only_writer(r, g);
    if (!writer) continue;
    page_state& page = page_at(r, g);
    lmw_page& lmw = page.lmw;
    lmw.keeper = to_small(*writer);
    const bool is_being_fetched = lmw.fetch != fetching::nothing;
    if (*writer != r) {
      if (is_being_fetched && keeps(rule::drop_fetches_in_flight)) lmw.drops_reply = true;
      if (page.has_copy && keeps(rule::drop_at_exclusive)) drop_copy(r, g);
      continue;
    }
    const bool is_valid_now = is_valid(r, g) && !is_being_fetched;
    if (!page.has_copy || (!is_valid_now && keeps(rule::exclusive_only_if_valid))) continue;
    end_sticking(r, g);
    drop_twin(lmw);
    lmw.open = false;
    lmw.thrown = s.rank[r].known[r];
    lmw.exclusive = true;
    page.may = access::store;
    note("rank ", r, " has page ", g, " alone");
  }
}

/// Fetches the pages again that must be here at the next arrival (X3).
void lmw_machine::fetch_what_must_be(int r) {
  for (int g = 0; g < pages; ++g) {
    lmw_page& lmw = lmw_at(r, g);
    if (!lmw.must_fetch || lmw.fetch != fetching::nothing) continue;
    if (page_at(r, g).has_copy) {
      lmw.must_fetch = false;
    } else {
      start_fetch(r, g);
    }
  }
}

// --- collection ----------------------------------------------------------------------------------

/// The rank that stored to the page last, of what comes after these intervals and before the last
/// barrier.
std::optional<int> lmw_machine::last_writer(int r, int g, const rank_vector& after) const {
  const rank_state& rank = s.rank[r];
  std::optional<int> writer;
  int latest = -1;
  for (int q = 0; q < p_.ranks; ++q) {
    for (int i = after[q] + 1; i <= rank.barrier_known[q]; ++i) {
      const int sum = sum_of(s.intervals[q][i].known);
      if (!stored_to(q, g, i) || sum <= latest) continue;
      latest = sum;
      writer = q;
    }
  }
  return writer;
}

/// Makes this rank's copies valid where it is the keeper, and drops others that are not (G1).
void lmw_machine::begin_collection(int r) {
  s.rank[r].collecting = collection::validating;
  note("rank ", r, " begins a collection");
  for (int g = 0; g < pages; ++g) {
    std::optional<int> keeper = last_writer(r, g, s.rank[r].collected);
    if (!keeper) continue;
    if (keeps(rule::keep_where_last_written)) {
      keeper = lmw_at(r, g).writer;
    } else if (p_.has_exclusive) {
      // If the page has just become exclusive, its keeper is where it did.
      keeper = only_writer(r, g).value_or(*keeper);
    }
    const page_state& page = page_at(r, g);
    lmw_at(r, g).keeper = to_small(*keeper);
    check(!page.lmw.exclusive || *keeper == r, "a page that is exclusive here is kept elsewhere");
    if (is_valid(r, g) || page.lmw.fetch != fetching::nothing) continue;
    if (*keeper == r) {
      start_fetch(r, g);
    } else if (page.has_copy && keeps(rule::drop_at_collection)) {
      drop_copy(r, g);
    }
  }
  maybe_done(r);
}

/// Reports "done", if no fetch is in progress (G2).
void lmw_machine::maybe_done(int r) {
  rank_state& rank = s.rank[r];
  if (rank.collecting != collection::validating) return;
  for (const page_state& page : rank.page) {
    if (page.lmw.fetch == fetching::nothing) continue;
    if (page.lmw.keeper == r || keeps(rule::wait_for_fetches_before_done)) return;
  }
  rank.collecting = collection::done;
  send(r, 0, make(message_kind::collection_done));
}

/// Throws diffs and twins away at "go", and begins the fetches that had to wait (G3).
void lmw_machine::throw_diffs_away(int r) {
  rank_state& rank = s.rank[r];
  rank.collecting = collection::none;
  ++rank.epoch;
  rank.collected = rank.barrier_known;
  note("rank ", r, " throws its diffs away");
  const small last = rank.collected[r];
  for (int g = 0; g < pages; ++g) {
    lmw_page& lmw = rank.page[g].lmw;
    if (lmw.has_twin && !lmw.open && lmw.twin_of <= last) drop_twin(lmw);
    lmw.thrown = std::max(lmw.thrown, last);
    for (int i = 1; i <= last; ++i) s.diffs[r][i][g] = {};
  }
  fetch_what_must_be(r);
  for (int g = 0; g < pages; ++g) {
    if (anyone_waits(r, g) && lmw_at(r, g).fetch == fetching::nothing)
      fault(r, g, anyone_waits_to_store(r, g));
  }
  leave_barrier(r);
}

}  // namespace page_model
