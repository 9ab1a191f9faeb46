// SPDX-License-Identifier: Apache-2.0
// What happens at faults, and the messages that serve them.
#include "lmw.hpp"

#include <algorithm>
#include <vector>

namespace page_model {

lmw_machine::lmw_machine(const program& p, std::optional<rule> broken) : machine(p, broken) {
  for (int r = 0; r < p_.ranks; ++r) {
    for (int g = 0; g < pages; ++g) {
      page_state& page = page_at(r, g);
      page.lmw.keeper = to_small(home_of(g));
      if (r != home_of(g)) continue;
      page.has_copy = true;
      page.may = access::load;
      if (!p_.has_exclusive) continue;
      page.lmw.exclusive = true;
      page.lmw.untouched = p_.pages_are_claimed;
      page.may = p_.pages_are_claimed ? access::none : access::store;
    }
  }
}

// --- faults --------------------------------------------------------------------------------------

/// Begins a fetch, unless there is one already or nothing is lacking (L6).
void lmw_machine::fault(int r, int g, bool) {
  if (lmw_at(r, g).fetch != fetching::nothing) return;
  if (is_valid(r, g)) return open(r, g);
  if (s.rank[r].collecting == collection::done && keeps(rule::no_fetch_after_done)) return;
  start_fetch(r, g);
}

/// Opens the valid copy to the threads that wait for it, and lets them go on (L9).
void lmw_machine::open(int r, int g) {
  page_state& page = page_at(r, g);
  page.lmw.untouched = false;
  if (anyone_waits_to_store(r, g)) {
    open_for_stores(r, g);
  } else {
    page.may = std::max(page.may, access::load);
  }
  wake(r, g, true);
}

void lmw_machine::start_fetch(int r, int g) {
  lmw_page& lmw = lmw_at(r, g);
  lmw.got_after = lmw.got_last = {};
  if (page_at(r, g).has_copy) {
    lmw.fetch = fetching::diffs;
    lmw.replies_missing = 0;
    ask_for_diffs(r, g);
  } else {
    lmw.fetch = fetching::page;
    lmw.replies_missing = 1;
    ask_keeper(r, g, r, anyone_waits_to_store(r, g));
  }
}

void lmw_machine::ask_keeper(int r, int g, int asker, bool stores) {
  const int keeper = lmw_at(r, g).keeper;
  check(keeper != r, "a page's keeper has no copy of it");
  message m = make(message_kind::page_request, g);
  m.asker = to_small(asker);
  m.stores = stores;
  send(r, keeper, m);
}

/// The first interval of another rank whose modifications are neither in the copy nor have come in
/// this fetch, or 0 if there is none.
int lmw_machine::first_to_ask_for(int r, int g, int of_rank) const {
  const lmw_page& lmw = lmw_at(r, g);
  const int known = s.rank[r].known[of_rank];
  for (int i = lmw.has[of_rank] + 1; i <= known; ++i) {
    if (!stored_to(of_rank, g, i)) continue;
    const bool came = i > lmw.got_after[of_rank] && known <= lmw.got_last[of_rank];
    return came ? 0 : i;
  }
  return 0;
}

/// Asks each writer for those of its diffs that are lacking. Returns false if none is.
bool lmw_machine::ask_for_diffs(int r, int g) {
  lmw_page& lmw = lmw_at(r, g);
  bool any = false;
  for (int q = 0; q < p_.ranks; ++q) {
    const int first = q == r ? 0 : first_to_ask_for(r, g, q);
    if (first == 0) continue;
    any = true;
    ++lmw.replies_missing;
    message m = make(message_kind::diff_request, g);
    m.after = keeps(rule::ask_from_first_lacking) ? to_small(first - 1) : lmw.has[q];
    m.last = s.rank[r].known[q];
    m.vector = lmw.has;
    send(r, q, m);
  }
  return any;
}

bool lmw_machine::got_diffs(int r, int g) const { return sum_of(lmw_at(r, g).got_last) != 0; }

/// Opens the page at the last reply, or asks again if more intervals came to be known meanwhile
/// (L7).
void lmw_machine::count_reply(int r, int g) {
  lmw_page& lmw = lmw_at(r, g);
  check(lmw.fetch != fetching::nothing && lmw.replies_missing != 0,
        "a reply comes for which nobody waits");
  if (--lmw.replies_missing != 0) return;
  const bool has_copy = page_at(r, g).has_copy;
  if (lmw.drops_reply || !has_copy) {
    lmw.drops_reply = false;
    const bool is_keeper = lmw.keeper == r;
    check(s.rank[r].collecting == collection::none || has_copy || !is_keeper,
          "a page's keeper has no copy of it at a collection");
    return start_fetch(r, g);
  }
  const bool looks_again = keeps(rule::fetch_until_nothing_lacks) || !got_diffs(r, g);
  if (looks_again && ask_for_diffs(r, g)) return;
  apply_diffs(r, g);
  lmw.fetch = fetching::nothing;
  const bool delays_arrival = lmw.must_fetch;
  lmw.must_fetch = false;
  open(r, g);
  maybe_done(r);
  if (delays_arrival) maybe_arrive(r);
}

/// Applies all diffs that the copy lacks, including those of this rank (L7, L8).
void lmw_machine::apply_diffs(int r, int g) {
  struct lacking {
    int rank, index, sum;
  };
  page_state& page = page_at(r, g);
  lmw_page& lmw = page.lmw;
  const rank_vector& known = s.rank[r].known;
  std::vector<lacking> all;
  for (int q = 0; q < p_.ranks; ++q) {
    if (q == r && !keeps(rule::apply_own_diffs_too)) continue;
    for (int i = lmw.has[q] + 1; i <= known[q]; ++i) {
      if (!stored_to(q, g, i)) continue;
      const bool is_here = q == r || (i > lmw.got_after[q] && i <= lmw.got_last[q]);
      check(is_here || !keeps(rule::fetch_until_nothing_lacks), "a diff is missing");
      if (is_here) all.push_back({q, i, sum_of(s.intervals[q][i].known)});
    }
  }
  // If one interval happened before another, the sum of its vector is less.
  const bool in_order = keeps(rule::apply_in_order);
  std::sort(all.begin(), all.end(), [&](const lacking& x, const lacking& y) {
    if (!in_order) return x.rank != y.rank ? x.rank < y.rank : x.index < y.index;
    return x.sum != y.sum ? x.sum < y.sum : x.rank < y.rank;
  });
  for (const lacking& each : all) {
    const diff& d = s.diffs[each.rank][each.index][g];
    check(d.exists, "a diff that is needed was thrown away");
    ++counted_.diffs_applied;
    for (int w = 0; w < words; ++w) {
      if (!d.changed.contains(w)) continue;
      page.data[w] = d.data[w];
      if (lmw.has_twin && keeps(rule::flush_before_applying)) lmw.twin[w] = d.data[w];
    }
  }
  for (int q = 0; q < p_.ranks; ++q) {
    const bool knows_all = q == r || keeps(rule::fetch_until_nothing_lacks);
    lmw.has[q] = std::max(lmw.has[q], knows_all ? known[q] : lmw.got_last[q]);
  }
}

// --- serving -------------------------------------------------------------------------------------

void lmw_machine::receive_protocol_message(int r, int from, const message& m) {
  rank_state& rank = s.rank[r];
  switch (m.what) {
    case message_kind::page_request:
      lmw_at(r, m.about).was_read = true;
      return receive_page_request(r, m);
    case message_kind::page_reply:
      return receive_page(r, m);
    case message_kind::diff_request:
      lmw_at(r, m.about).was_read = true;
      return receive_diff_request(r, from, m);
    case message_kind::diff_reply: {
      lmw_page& lmw = lmw_at(r, m.about);
      if (!lmw.drops_reply) {
        lmw.got_after[from] = m.after;
        lmw.got_last[from] = m.last;
      }
      return count_reply(r, m.about);
    }
    case message_kind::collection_done:
      if (++rank.ranks_done != p_.ranks) return;
      rank.ranks_done = 0;
      for (int q = p_.ranks - 1; q >= 0; --q) send(r, q, make(message_kind::collection_go));
      return;
    case message_kind::collection_go:
      return throw_diffs_away(r);
    default:
      fail("a message of another protocol");
  }
}

void lmw_machine::receive_page_request(int r, const message& m) {
  const int g = m.about;
  page_state& page = page_at(r, g);
  if (!page.has_copy) return ask_keeper(r, g, m.asker, m.stores);
  if (!page.lmw.untouched || !m.stores) return reply_with_page(r, m.asker, g);
  // The page is given away (X4). Later requests are sent on to its new keeper.
  page.lmw.untouched = page.lmw.exclusive = page.has_copy = false;
  page.lmw.keeper = m.asker;
  message reply = make(message_kind::page_reply, g);
  reply.as_own = true;
  send(r, m.asker, reply);
}

/// Whether the copy has all modifications of the closed intervals of its own rank (L13).
bool lmw_machine::has_own(int r, int g) const {
  if (!keeps(rule::page_has_own)) return true;
  for (int i = lmw_at(r, g).has[r] + 1; i <= s.rank[r].known[r]; ++i) {
    if (stored_to(r, g, i)) return false;
  }
  return true;
}

/// Serves the page to another rank; if it is open, its twin (L10, L11).
void lmw_machine::reply_with_page(int r, int asker, int g) {
  page_state& page = page_at(r, g);
  page.lmw.untouched = false;
  if (page.lmw.exclusive) share(r, g);
  message reply = make(message_kind::page_reply, g);
  reply.data = page.lmw.open && keeps(rule::serve_the_twin) ? page.lmw.twin : page.data;
  reply.vector = page.lmw.has;
  if (has_own(r, g)) reply.vector[r] = s.rank[r].known[r];
  send(r, asker, reply);
}

void lmw_machine::receive_page(int r, const message& m) {
  const int g = m.about;
  page_state& page = page_at(r, g);
  lmw_page& lmw = page.lmw;
  if (m.as_own) {
    check(!lmw.drops_reply && !page.has_copy && lmw.fetch == fetching::page,
          "a page is given to a rank that has it");
    page.has_copy = lmw.exclusive = true;
    page.may = access::store;
    lmw.keeper = to_small(r);
    lmw.fetch = fetching::nothing;
    lmw.replies_missing = 0;
    lmw.must_fetch = false;
    note("rank ", r, " has page ", g, " as its own");
    open(r, g);
    return maybe_done(r);
  }
  if (lmw.drops_reply) return count_reply(r, g);
  if (page.has_copy && lmw.has_twin) {
    check(!lmw.open, "a page that is being stored to was fetched");
    make_diff(r, g);
  }
  page.has_copy = true;
  page.data = m.data;
  lmw.has = m.vector;
  if (!keeps(rule::apply_own_diffs_too)) lmw.has[r] = s.rank[r].known[r];
  lmw.fetch = fetching::diffs;
  count_reply(r, g);
}

/// Answers with diffs, or with the page instead (L12).
void lmw_machine::receive_diff_request(int r, int from, const message& m) {
  const int g = m.about;
  const page_state& page = page_at(r, g);
  bool page_has_all = page.has_copy && has_own(r, g);
  if (keeps(rule::page_only_if_it_has_all)) {
    for (int q = 0; q < p_.ranks; ++q)
      page_has_all = page_has_all && (q == r || page.lmw.has[q] >= m.vector[q]);
  }
  const bool are_gone = m.after < page.lmw.thrown;
  const bool are_long = p_.answers_with_pages && m.last - m.after > 1;
  if (are_gone || (are_long && page_has_all)) {
    if (page.has_copy) return reply_with_page(r, from, g);
    return ask_keeper(r, g, from, false);
  }
  for (int i = m.after + 1; i <= m.last; ++i) {
    if (!stored_to(r, g, i) || s.diffs[r][i][g].exists) continue;
    check(page.lmw.has_twin && page.lmw.twin_of == i && !page.lmw.open,
          "a diff that is asked for cannot be made");
    make_diff(r, g);
  }
  message reply = make(message_kind::diff_reply, g);
  reply.after = m.after;
  reply.last = m.last;
  send(r, from, reply);
}

}  // namespace page_model
