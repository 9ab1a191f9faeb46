// SPDX-License-Identifier: Apache-2.0
// How pages and diffs come to a rank under lmw: faults, requests, what a rank sends to others, and
// what it does with what it gets.
#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

#include "base/check.hpp"
#include "shared/pages/diff.hpp"
#include "shared/pages/lmw.hpp"
#include "shared/pages/lmw_parts.hpp"
#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

struct lmw::one_diff {
  const interval_record* of;
  const std::byte* bytes;
  std::size_t size;
};

// --- faults

void lmw::fault(page_number number, bool store, bool /*again*/) {
  lmw_page& page = entry_of(number);
  page.wanted |= store ? lmw_page::for_store : lmw_page::for_load;
  if (page.is_being_fetched()) {
    ++x_.counts->faults_joined;
    return;
  }
  if (is_valid(page)) {
    ++x_.counts->faults_local;
    return open(page);
  }
  ++x_.counts->faults_remote;
  x_.count_overlap();
  if (stopped_ && holds(rule::no_fetch_after_done)) {
    if (!page.deferred) deferred_.push_back(number);
    page.deferred = true;
    return;
  }
  fetch_with_neighbours(number);
}

void lmw::fetch_with_neighbours(page_number number) {
  const lmw_page& page = table_[number].lmw;
  const bool store = (page.wanted & lmw_page::for_store) != 0;
  const int keeper = page.keeper;
  start_fetch(table_[number].lmw, store);
  const std::uint32_t count = x_.layout.alike(number, x_.host.fetched_together(number));
  const std::uint32_t most = together_at_most(number);
  for (std::uint32_t i = 1; i < most; ++i) {
    lmw_page& next = entry_of(number + i);
    if (next.is_being_fetched() || is_valid(next)) continue;
    if (i < count) {
      if (next.has_copy() || next.keeper == keeper) start_fetch(next, store);
    } else if (next.follows) {
      start_fetch(next, false);
      next.on_trial = next.brought++ % brings_for_a_trial == 0;
    } else {
      return;
    }
  }
}

/// `store`: the page will be stored to, so that its home may give it away if nobody has touched it.
void lmw::start_fetch(lmw_page& page, bool store) {
  SOJOURN_CHECK(page.fetch == nullptr, "page %u is fetched twice", number_of(page));
  page.fetch = ::new (allocate(sizeof(page_fetch)))
      page_fetch(static_cast<std::size_t>(x_.ranks), x_.host.memory());
  ++fetches_;
  ++x_.faults_under_way;
  page.missing = 0;
  if (page.has_copy()) {
    ask_for_diffs(page, is_first | (page.pulled ? is_pull : 0));
    return;
  }
  SOJOURN_CHECK(page.keeper != x_.me, "page %u is kept here, and there is no copy",
                number_of(page));
  page.missing = 1;
  const std::uint32_t how =
      is_first | (store ? will_be_stored_to : 0) | (page.pulled ? is_pull : 0);
  requests_.push_back(
      {page.keeper, page_message::page_request, page.wanted != 0, how, number_of(page), 0, 0});
}

/// Asks all ranks at once whose diffs have neither been applied to the copy nor been fetched.
/// Returns false if there is no such rank.
bool lmw::ask_for_diffs(lmw_page& page, std::uint32_t how) {
  const interval* in_copy = has(page);
  const vector_clock& known = x_.log.known();
  page_fetch& f = *page.fetch;
  bool any = false;
  for (const page_writer* w = page.history->writers; w != nullptr; w = w->next) {
    const auto q = static_cast<std::size_t>(w->rank);
    interval first = 0;  // the first interval that lists the page and that the copy lacks
    for (const foreign_notice* n = w->newest; n != nullptr && n->index > in_copy[q]; n = n->older)
      first = n->index;
    if (first == 0 || (first > f.after[q] && known[q] <= f.up_to[q])) continue;
    any = true;
    ++page.missing;
    requests_.push_back({w->rank, page_message::diff_request, page.wanted != 0, how,
                         number_of(page),
                         holds(rule::ask_from_first_lacking) ? first : in_copy[q] + 1, known[q]});
  }
  return any;
}

void lmw::send_requests() {
  if (!lacking_pins_.empty()) refresh_pinned();
  if (requests_.empty()) return;
  std::pmr::vector<request> all(x_.host.memory());
  all.swap(requests_);
  // Pages that fibers wait for are asked for last, so their replies come last, when the other pages
  // have come, too, and all are opened together. Not sorted by stable_sort, because that takes
  // memory from malloc.
  std::sort(all.begin(), all.end(), [](const request& x, const request& y) {
    return std::tuple(x.to, x.what, x.is_waited_for, x.page) <
           std::tuple(y.to, y.what, y.is_waited_for, y.page);
  });
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    while (end < all.size() && all[end].to == all[i].to && all[end].what == all[i].what) ++end;
    message_head head{.what = all[i].what, .rank = static_cast<std::uint16_t>(x_.me)};
    head.number = static_cast<std::uint32_t>(end - i);
    message_writer& out = x_.begin(head);
    for (; i < end; ++i) {
      const request& r = all[i];
      out.put(r.page);
      out.put(r.how);
      if (r.what == page_message::page_request) continue;
      out.put(r.first);
      out.put(r.last);
      out.put_clock({has(table_[r.page].lmw), static_cast<std::size_t>(x_.ranks)});
    }
    x_.send(all[end - 1].to);
  }
}

/// When the last reply has come, asks for diffs that have become known meanwhile; if there are
/// none, applies all diffs.
void lmw::reply_came(lmw_page& page) {
  if (--page.missing != 0) return;
  if (page.outdated || !page.has_copy()) {
    page.outdated = false;
    const bool store = (page.wanted & lmw_page::for_store) != 0;
    end_fetch(page);
    start_fetch(page, store);
    return;
  }
  const bool nothing_yet = std::all_of(page.fetch->up_to.begin(), page.fetch->up_to.end(),
                                       [](interval i) { return i == 0; });
  if ((holds(rule::fetch_until_nothing_lacks) || nothing_yet) && ask_for_diffs(page, 0)) return;
  apply_all(page);
  end_fetch(page);
  end_must(page);
  open(page);
}

/// Pages come in any order. Those at the end of the list that have come are removed, so each page
/// is removed once.
void lmw::end_must(lmw_page& page) {
  page.must = false;
  while (!must_.empty() && !table_[must_.back()].lmw.must) must_.pop_back();
}

void lmw::end_fetch(lmw_page& page) {
  for (const page_fetch::kept_diff& d : page.fetch->diffs)
    if (d.bytes != nullptr) deallocate(d.bytes, d.size);
  if (page.fetch->whole != nullptr) deallocate(page.fetch->whole, page_bytes);
  page.fetch->~page_fetch();
  deallocate(page.fetch, sizeof(page_fetch));
  page.fetch = nullptr;
  page.missing = 0;
  if (page.pulled) --pulls_under_way_;
  page.pulled = false;
  --fetches_;
  --x_.faults_under_way;
}

std::byte* lmw::room_beside(lmw_page& page) {
  std::byte*& room = page.fetch->whole;
  if (room == nullptr) room = static_cast<std::byte*>(allocate(page_bytes));
  return room;
}

/// Applies the diffs that have come, and this rank's own diffs that a fetched page lacks, in an
/// order in which no diff comes before one that happened before it.
void lmw::apply_all(lmw_page& page) {
  interval* in_copy = has(page);
  std::pmr::vector<one_diff> todo(x_.host.memory());
  for (const page_fetch::kept_diff& d : page.fetch->diffs)
    if (d.of->index > in_copy[d.of->owner]) todo.push_back({d.of, d.bytes, d.size});
  if (holds(rule::apply_own_too))
    for (const own_notice* n = page.history->newest; n != nullptr && n->index > in_copy[x_.me];
         n = n->older) {
      SOJOURN_CHECK(n->made, "the diff of interval %u of page %u was not made", n->index,
                    number_of(page));
      todo.push_back({&x_.log.find(x_.me, n->index), n->diff, n->bytes});
    }
  std::sort(todo.begin(), todo.end(), [](const one_diff& x, const one_diff& y) {
    if (!holds(rule::apply_in_order))
      return std::tuple(x.of->owner, x.of->index) < std::tuple(y.of->owner, y.of->index);
    return std::tuple(x.of->order, x.of->owner) < std::tuple(y.of->order, y.of->owner);
  });
  // If the page is pinned, the diffs are applied to a copy, and then only the bytes that differ are
  // put in place. Bytes that nobody has changed must keep their values meanwhile, and bytes that
  // are being stored to must be left alone.
  std::byte* const in_place = x_.host.bytes(number_of(page));
  const bool beside = is_used_meanwhile(page);
  std::byte* const before = keeps_stores(page) ? page.twin : in_place;
  if (beside && page.fetch->whole == nullptr) std::memcpy(room_beside(page), before, page_bytes);
  std::byte* const bytes = beside ? page.fetch->whole : in_place;
  for (const one_diff& d : todo) {
    if (d.size != 0) apply_diff(bytes, d.bytes, d.size);
    ++x_.counts->diffs_applied;
    x_.counts->diff_bytes_applied += d.size;
    if (x_.report != nullptr) x_.report->meet(number_of(page), *d.of, {d.bytes, d.size});
  }
  if (beside) {
    auto* changes = static_cast<std::byte*>(allocate(diff_bytes_max));
    const std::size_t size = make_diff(changes, bytes, before);
    if (size != 0) apply_diff(in_place, changes, size);
    if (before != in_place) std::memcpy(before, bytes, page_bytes);
    deallocate(changes, diff_bytes_max);
  }
  const vector_clock& known = x_.log.known();
  for (std::size_t q = 0; q < known.size(); ++q) {
    const bool all = static_cast<int>(q) == x_.me || holds(rule::fetch_until_nothing_lacks);
    in_copy[q] = std::max(in_copy[q], all ? known[q] : page.fetch->up_to[q]);
  }
}

// --- serving

void lmw::serve_page(lmw_page& page, int to) {
  if (page.is_exclusive()) share_with_reader(page);
  message_writer& out = x_.begin({.what = page_message::page_reply, .number = number_of(page)});
  // The page that is sent has all modifications of this rank's closed intervals. It has none of the
  // open interval, because an open page is sent as its twin.
  interval* in_copy = has(page);
  const interval own = in_copy[x_.me];
  if (has_own(page)) in_copy[x_.me] = x_.log.mine();
  out.put_clock({in_copy, static_cast<std::size_t>(x_.ranks)});
  in_copy[x_.me] = own;
  const std::byte* from = page.fetch != nullptr && page.fetch->whole != nullptr ? page.fetch->whole
                          : page.is_open() && holds(rule::serve_the_twin)
                              ? page.twin
                              : x_.host.bytes(number_of(page));
  x_.send(to, {from, page_bytes});
}

void lmw::serve_diffs(lmw_page& page, int to, interval first, interval last,
                      std::span<const interval> theirs) {
  std::size_t total = 0;
  std::uint32_t count = 0;
  const auto each = [&](auto visit) {
    if (page.history == nullptr) return;
    for (own_notice* n = page.history->newest; n != nullptr && n->index >= first; n = n->older)
      if (n->index <= last) visit(*n);
  };
  const bool gone = first <= page.thrown;
  if (!gone)
    each([&](own_notice& n) {
      if (!n.made) make_own_diff(page);
      total += n.bytes;
      ++count;
    });
  bool has_all = page.has_copy() && has_own(page);
  for (std::size_t q = 0; q < theirs.size() && has_all && holds(rule::page_has_all); ++q)
    has_all = static_cast<int>(q) == x_.me || page.is_exclusive() || has(page)[q] >= theirs[q];
  if (gone || (settings_.whole_pages && has_all && total > page_bytes)) {
    if (page.has_copy()) return serve_page(page, to);
    SOJOURN_CHECK(page.keeper != x_.me, "page %u is kept here, and there is no copy",
                  number_of(page));
    message_writer& out = x_.begin(
        {.what = page_message::page_request, .rank = static_cast<std::uint16_t>(to), .number = 1});
    out.put(number_of(page));
    out.put(is_first);
    return x_.send(page.keeper);
  }
  message_writer& out = x_.begin(
      {.what = page_message::diff_reply, .number = number_of(page), .first = first, .last = last});
  out.put(count);
  each([&](const own_notice& n) {
    out.put(n.index);
    out.put(std::uint32_t{n.bytes});
    out.put_bytes(n.diff, n.bytes);
  });
  x_.send(to);
}

lmw_page& lmw::checked_page(const page_message_reader& from, page_number number) {
  return entry_of(table_.checked(from, number, protocol_kind::lmw));
}

std::uint32_t lmw::take_how(page_message_reader& from, const lmw_page& page) {
  const auto how = from.take<std::uint32_t>();
  if ((how & is_pull) != 0 && pulls_due_ != 0 && is_own_of_epoch(page)) --pulls_due_;
  return how;
}

void lmw::note_reader(lmw_page& page, std::uint32_t how) {
  if ((how & is_first) != 0 && page.readers != 0xff) ++page.readers;
}

void lmw::receive(page_message_reader& from, const message_head& head) {
  switch (head.what) {
    case page_message::page_request:
      for (std::uint32_t i = 0; i < head.number; ++i) {
        lmw_page& page = checked_page(from, from.take<page_number>());
        const std::uint32_t how = take_how(from, page);
        if (!page.has_copy()) {
          from.require(page.keeper != x_.me,
                       "asks for a page that this rank keeps and does not have");
          message_writer& out =
              x_.begin({.what = page_message::page_request, .rank = head.rank, .number = 1});
          out.put(number_of(page));
          out.put(how & ~is_pull);
          x_.send(page.keeper);
        } else if (page.state == lmw_state::untouched && (how & will_be_stored_to) != 0) {
          // Gives the page away without its bytes, which are all 0. Later requests for it are
          // passed on.
          enter(page, lmw_state::none);
          page.keeper = head.rank;
          x_.begin({.what = page_message::page_reply, .flag = 1, .number = number_of(page)});
          x_.send(head.rank);
        } else {
          note_reader(page, how);
          serve_page(page, head.rank);
        }
      }
      return;
    case page_message::diff_request: {
      vector_clock theirs(static_cast<std::size_t>(x_.ranks), 0, x_.host.memory());
      for (std::uint32_t i = 0; i < head.number; ++i) {
        lmw_page& page = checked_page(from, from.take<page_number>());
        note_reader(page, take_how(from, page));
        const auto first = from.take<interval>();
        const auto last = from.take<interval>();
        from.take_clock(theirs);
        x_.log.check_clock(from, theirs);
        from.require(first != 0 && first <= last, "asks for diffs of no interval");
        from.require(last <= x_.log.mine(), "asks for diffs of an interval that is not closed");
        serve_diffs(page, from.from(), first, last, theirs);
      }
      return;
    }
    case page_message::page_reply: {
      lmw_page& page = checked_page(from, head.number);
      from.require(page.missing != 0, "sends a page that was not asked for");
      return take_page(from, head, page);
    }
    case page_message::diff_reply: {
      lmw_page& page = checked_page(from, head.number);
      from.require(page.missing != 0, "sends diffs that were not asked for");
      return take_diffs(from, head, page);
    }
    default:
      from.refuse("is of another protocol");
  }
}

void lmw::take_page(page_message_reader& from, const message_head& head, lmw_page& page) {
  if (head.flag != 0) {
    from.require(page.state == lmw_state::none && !page.outdated, "gives away a page that is here");
    enter(page, lmw_state::exclusive);
    page.keeper = static_cast<std::uint16_t>(x_.me);
    end_fetch(page);
    end_must(page);
    open(page);
    return;
  }
  if (!page.outdated) {
    if (page.has_copy() && page.twin != nullptr && !page.is_open()) make_own_diff(page);
    if (page.state == lmw_state::none) enter(page, lmw_state::closed);
    page.useless = false;
    history_of(page).may_lack = true;
    const std::span<interval> in_page(has(page), static_cast<std::size_t>(x_.ranks));
    from.take_clock(in_page);
    x_.log.check_clock(from, in_page);
    for (const own_notice* n = page.history->newest;
         n != nullptr && n->index > in_page[static_cast<std::size_t>(x_.me)]; n = n->older)
      from.require(n->made, "is a page without what this rank has stored and still has");
    if (!holds(rule::apply_own_too)) has(page)[x_.me] = x_.log.mine();
    std::byte* const to =
        is_used_meanwhile(page) ? room_beside(page) : x_.host.bytes(number_of(page));
    std::memcpy(to, from.take_bytes(page_bytes).data(), page_bytes);
    ++x_.counts->pages_fetched;
  }
  reply_came(page);
}

void lmw::take_diffs(page_message_reader& from, const message_head& head, lmw_page& page) {
  if (!page.outdated) {
    page_fetch& f = *page.fetch;
    const auto q = static_cast<std::size_t>(from.from());
    from.require(head.first > x_.log.collected()[q] && head.first <= head.last &&
                     head.last <= x_.log.known()[q],
                 "sends diffs of intervals that are not known");
    // A second reply of the same rank has all that the first one had.
    for (page_fetch::kept_diff& d : f.diffs)
      if (d.of->owner == q && d.bytes != nullptr) deallocate(d.bytes, d.size);
    std::erase_if(f.diffs, [&](const page_fetch::kept_diff& d) { return d.of->owner == q; });
    for (auto left = from.take<std::uint32_t>(); left != 0; --left) {
      const auto index = from.take<interval>();
      const auto size = from.take<std::uint32_t>();
      const auto bytes = from.take_bytes(size);
      from.require(index >= head.first && index <= head.last && size <= diff_bytes_max &&
                       (size == 0 || is_diff(bytes.data(), size)),
                   "holds a diff that is none");
      std::byte* kept = nullptr;
      if (size != 0) {
        kept = static_cast<std::byte*>(allocate(size));
        std::memcpy(kept, bytes.data(), size);
      }
      f.diffs.push_back({&x_.log.find(from.from(), index), kept, static_cast<std::uint16_t>(size)});
    }
    f.after[q] = head.first - 1;
    f.up_to[q] = head.last;
  }
  reply_came(page);
}

}  // namespace sojourn::detail::pages
