// SPDX-License-Identifier: Apache-2.0
// What becomes of stores: a twin is made before the first one, a record when the interval is
// closed, and a diff when somebody needs it.
#include "lmw.hpp"

#include <algorithm>

namespace page_model {

/// Makes the page writable, and its twin for the open interval (L1).
void lmw_machine::open_for_stores(int r, int g) {
  page_state& page = page_at(r, g);
  page.may = access::store;
  if (page.lmw.exclusive || page.lmw.open) return;
  if (page.lmw.has_twin) {
    if (keeps(rule::one_diff_per_interval)) {
      make_diff(r, g);
    } else {
      // The diff of the later interval will have the stores of both.
      s.diffs[r][page.lmw.twin_of][g].exists = true;
    }
  }
  if (!page.lmw.has_twin) page.lmw.twin = page.data;
  page.lmw.has_twin = page.lmw.open = true;
  page.lmw.twin_of = 0;
}

/// Records which pages were stored to, and protects them or lets them stick (L2, X5).
void lmw_machine::close_interval(int r) {
  rank_state& rank = s.rank[r];
  auto is_unchanged = [](const page_state& page) {
    return page.lmw.sticks && page.data == page.lmw.twin;
  };
  bool any = false;
  for (const page_state& page : rank.page) any = any || (page.lmw.open && !is_unchanged(page));
  if (!any) return;
  const small index = ++rank.known[r];
  if (index >= intervals_max) fail("too many intervals");
  interval& record = s.intervals[r][index];
  record.known = rank.known;
  for (int g = 0; g < pages; ++g) {
    page_state& page = rank.page[g];
    lmw_page& lmw = page.lmw;
    if (!lmw.open) continue;
    lmw.has[r] = index;
    if (is_unchanged(page)) continue;
    record.pages.insert(g);
    if (p_.readers_count && lmw.was_read) record.read.insert(g);
    note("rank ", r, " closes its interval ", index, ", in which page ", g, " was stored to");
    lmw.twin_of = index;
    lmw.open = false;
    if (lmw.sticks || (p_.pages_stick && lmw.was_written)) {
      make_diff(r, g);
      renew_twin(r, g);
      continue;
    }
    lmw.was_written = true;
    if (keeps(rule::protect_at_close)) page.may = access::load;
  }
}

/// Makes those copies stale that lack an interval of which the message tells (L3, L4).
void lmw_machine::take_in(int r, const message& m) {
  rank_vector& known = s.rank[r].known;
  bool is_news = false;
  for (int q = 0; q < p_.ranks; ++q) is_news = is_news || m.vector[q] > known[q];
  if (!is_news) return;
  if (keeps(rule::close_before_notices)) close_interval(r);
  for (int q = 0; q < p_.ranks; ++q) {
    for (int i = known[q] + 1; i <= m.vector[q]; ++i) {
      for (int g = 0; g < pages; ++g) {
        if (stored_to(q, g, i)) invalidate(r, g, q, i);
      }
    }
  }
  raise(known, m.vector);
}

void lmw_machine::invalidate(int r, int g, int of_rank, int interval) {
  page_state& page = page_at(r, g);
  if (!page.has_copy) return;
  if (page.lmw.exclusive) share(r, g);
  if (page.lmw.has[of_rank] >= interval) return;
  end_sticking(r, g);
  if (keeps(rule::flush_before_applying) && page.lmw.has_twin && !page.lmw.open) make_diff(r, g);
  page.may = access::none;
  note("rank ", r, " invalidates page ", g);
}

/// Ends that the page is exclusive (L11).
void lmw_machine::share(int r, int g) {
  page_state& page = page_at(r, g);
  page.lmw.exclusive = false;
  raise(page.lmw.has, s.rank[r].known);
  if (keeps(rule::protect_when_first_served)) page.may = std::min(page.may, access::load);
}

/// Whether there is a copy that lacks no interval that the rank knows of.
bool lmw_machine::is_valid(int r, int g) const {
  const page_state& page = page_at(r, g);
  if (!page.has_copy) return false;
  if (page.lmw.exclusive) return true;
  for (int q = 0; q < p_.ranks; ++q) {
    if (q == r) continue;
    for (int i = page.lmw.has[q] + 1; i <= s.rank[r].known[q]; ++i) {
      if (stored_to(q, g, i)) return false;
    }
  }
  return true;
}

void lmw_machine::drop_twin(lmw_page& lmw) {
  lmw.has_twin = false;
  lmw.twin_of = 0;
  lmw.twin = {};
}

/// Makes the diff of a closed interval from its twin, and drops the twin.
void lmw_machine::make_diff(int r, int g) {
  const page_state& page = page_at(r, g);
  check(page.lmw.has_twin && !page.lmw.open,
        "a diff is made without the twin of a closed interval");
  diff& made = s.diffs[r][page.lmw.twin_of][g];
  check(!made.exists, "a second diff of one interval is made");
  made.exists = true;
  ++counted_.diffs_made;
  for (int w = 0; w < words; ++w) {
    if (page.data[w] == page.lmw.twin[w]) continue;
    made.changed.insert(w);
    made.data[w] = page.data[w];
  }
  drop_twin(lmw_at(r, g));
}

/// Lets the page stick: it is open from the beginning of the next interval (X5).
void lmw_machine::renew_twin(int r, int g) {
  page_state& page = page_at(r, g);
  page.lmw.twin = page.data;
  page.lmw.has_twin = page.lmw.open = page.lmw.sticks = true;
}

/// Ends that the page sticks. Requires that the interval was closed.
void lmw_machine::end_sticking(int r, int g) {
  page_state& page = page_at(r, g);
  if (!page.lmw.sticks) return;
  check(page.data == page.lmw.twin, "a page stops sticking with stores in the open interval");
  page.lmw.sticks = page.lmw.was_written = page.lmw.open = false;
  page.may = std::min(page.may, access::load);
  drop_twin(page.lmw);
}

/// Drops the copy, whose diff is made first, and is kept.
void lmw_machine::drop_copy(int r, int g) {
  page_state& page = page_at(r, g);
  end_sticking(r, g);
  if (page.lmw.has_twin) make_diff(r, g);
  page.has_copy = false;
  page.may = access::none;
  page.data = {};
  page.lmw.has = {};
  const rank_state& rank = s.rank[r];
  for (int i = rank.barrier_known[r] + 1; i <= rank.known[r]; ++i) {
    if (stored_to(r, g, i) && keeps(rule::refetch_before_arrival)) page.lmw.must_fetch = true;
  }
}

}  // namespace page_model
