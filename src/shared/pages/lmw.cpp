// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/lmw.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "base/check.hpp"
#include "shared/pages/diff.hpp"
#include "shared/pages/lmw_parts.hpp"
#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

namespace {

/// Whether a page may go from one state to the other: the arrows that lmw.hpp draws.
constexpr bool may_follow(lmw_state from, lmw_state to) {
  using enum lmw_state;
  switch (to) {
    case none:
    case closed:
      return from != to;
    case open:
      return from == closed || from == guessed || from == sticking_for_pin;
    case guessed:
      return from == closed;
    case sticking:
      return from == open;
    case sticking_for_pin:
      return from == closed || from == open || from == guessed;
    case exclusive:
      return from == none || from == closed || is_exclusive(from);
    case untouched:
      return from == none;
  }
  return false;
}

/// Whether the other members of the page may have their values when it is in this state.
bool agrees(const lmw_page& page, lmw_state state) {
  if (page.useless && !is_open(state)) return false;
  if (page.outdated && !page.is_being_fetched()) return false;
  if (is_open(state)) return page.twin != nullptr && page.twin_of == 0;
  return page.twin == nullptr || (page.twin_of != 0 && !is_exclusive(state));
}

}  // namespace

lmw::lmw(exchange& x, page_table& table, const settings& s)
    : x_(x),
      table_(table),
      settings_(s),
      open_(x.host.memory()),
      closing_(x.host.memory()),
      sticking_(x.host.memory()),
      must_(x.host.memory()),
      deferred_(x.host.memory()),
      lacking_pins_(x.host.memory()),
      listed_(x.host.memory()),
      ahead_(x.host.memory()),
      requests_(x.host.memory()) {}

lmw::~lmw() = default;

lmw_page& lmw::entry_of(page_number number) {
  lmw_page& page = table_[number].lmw;
  if (page.known) [[likely]]
    return page;
  const int home = x_.layout.home(number);
  page.known = true;
  page.keeper = static_cast<std::uint16_t>(home);
  if (home == x_.me) {
    enter(page, !settings_.exclusive ? lmw_state::closed
                : settings_.claims   ? lmw_state::untouched
                                     : lmw_state::exclusive);
    if (!settings_.exclusive) history_of(page);
  }
  return page;
}

std::size_t lmw::history_bytes() const {
  return sizeof(page_history) + static_cast<std::size_t>(x_.ranks) * sizeof(interval);
}

page_history& lmw::history_of(lmw_page& page) {
  if (page.history == nullptr) {
    page.history = ::new (allocate(history_bytes(), alignof(page_history))) page_history;
    std::memset(static_cast<void*>(page.history + 1), 0, history_bytes() - sizeof(page_history));
  }
  return *page.history;
}

page_writer& lmw::writer_of(page_history& h, int rank) {
  for (page_writer* w = h.writers; w != nullptr; w = w->next)
    if (w->rank == rank) return *w;
  void* block = allocate(sizeof(page_writer), alignof(page_writer));
  return *(h.writers = ::new (block) page_writer{h.writers, nullptr, rank});
}

interval* lmw::has(lmw_page& page) { return reinterpret_cast<interval*>(&history_of(page) + 1); }

// --- protection and states

/// Changes a page's state; nothing else does. The twin must be as the new state says before.
void lmw::enter(lmw_page& page, lmw_state to) {
  SOJOURN_CHECK(may_follow(page.state, to) && agrees(page, to),
                "page %u goes from state %d to state %d, with %s twin, of interval %u",
                number_of(page), static_cast<int>(page.state), static_cast<int>(to),
                page.twin != nullptr ? "a" : "no", page.twin_of);
  page.state = to;
}

/// To be called when an untouched page is about to be used, or restored.
void lmw::touch(lmw_page& page) {
  if (page.state == lmw_state::untouched) enter(page, lmw_state::exclusive);
}

/// Whether the copy has this rank's own modifications. It lacks them after the page was fetched,
/// until other ranks' diffs have come: these must be applied before this rank's own diffs.
bool lmw::has_own(lmw_page& page) {
  if (page.history == nullptr || page.history->newest == nullptr) return true;
  return has(page)[x_.me] >= page.history->newest->index || !holds(rule::page_has_own);
}

/// Whether the copy has all modifications that this rank knows of.
bool lmw::is_valid(lmw_page& page) {
  if (!page.has_copy()) return false;
  if (page.is_exclusive() || page.history == nullptr) return true;
  if (!page.history->may_lack) return true;
  const interval* in_copy = has(page);
  for (const page_writer* w = page.history->writers; w != nullptr; w = w->next)
    if (w->newest != nullptr && w->newest->index > in_copy[w->rank]) return false;
  page.history->may_lack = false;
  return true;
}

/// Lets the fibers that wait for a valid page have what they want.
void lmw::open(lmw_page& page) {
  if (page.on_trial && page.wanted == 0 && page.pinned == access::none) return;
  page.on_trial = false;
  const access needed = (page.wanted & lmw_page::for_store) != 0 ? access::store : access::load;
  touch(page);
  if (page.is_exclusive()) {
    set_may(page, access::store);
  } else if (needed == access::store) {
    if (!page.is_open()) open_with_neighbours(page);
    set_may(page, access::store);
  } else if (page.may == access::none) {
    set_may(page, access::load);
  }
  table_.wake(page);
  if (page.lacks_pinned) end_lacking(page);
}

/// `how`: one of the states in which a page is open.
void lmw::open_for_stores(lmw_page& page, lmw_state how) {
  if (page.twin != nullptr && holds(rule::diff_an_interval)) make_own_diff(page);
  if (page.twin == nullptr) renew_twin(page);
  set_twin_of(page, 0);
  enter(page, how);
  page.unchanged = 0;
  list_open(page);
  set_may(page, access::store);
}

void lmw::list_open(lmw_page& page) {
  if (!page.is_listed_open) open_.push_back(number_of(page));
  page.is_listed_open = true;
}

/// Whether this rank alone stored to both pages between the same two barriers, and no rank has
/// stored to either since.
bool lmw::is_stored_to_with(const lmw_page& page, const lmw_page& other) const {
  const auto is_own = [&](const lmw_page& p) {
    return p.seen != 0 && !p.several_writers && p.writer == x_.me;
  };
  return is_own(page) && is_own(other) && page.seen == other.seen;
}

/// Opens a page for a store, and with it the pages behind it that this rank stored to together with
/// it the last time: making a twin takes a tenth of the time of a fault. Pages to which nobody
/// stores this time are closed again.
void lmw::open_with_neighbours(lmw_page& page) {
  open_for_stores(page, lmw_state::open);
  const page_number number = number_of(page);
  const std::uint32_t most = together_at_most(number);
  for (std::uint32_t i = 1; i < most; ++i) {
    lmw_page& next = entry_of(number + i);
    if (next.is_open()) continue;
    // is_valid() is asked, too, because a pinned page allows loads even while it lacks
    // modifications.
    if (next.may != access::load || next.is_exclusive() || !is_stored_to_with(page, next) ||
        !is_valid(next) || next.is_being_fetched())
      return;
    open_for_stores(next, lmw_state::guessed);
  }
}

/// An exclusive page becomes shared: it is about to be served, or another rank has stored to it.
void lmw::share(lmw_page& page) {
  enter(page, lmw_state::closed);
  take_later({has(page), static_cast<std::size_t>(x_.ranks)}, x_.log.known());
  if (page.pinned == access::store && holds(rule::stick_at_share))
    return open_for_stores(page, lmw_state::sticking_for_pin);
  if (holds(rule::protect_at_share) && page.may == access::store) set_may(page, access::load);
}

/// An exclusive page is about to be served. If this rank has stored to it lately, it will again, so
/// it is left open: a twin costs less than a fault.
void lmw::share_with_reader(lmw_page& page) {
  const bool will_store = page.may == access::store && page.writer == x_.me && page.seen != 0 &&
                          x_.epoch - page.seen < epochs_of_a_guess &&
                          together_at_most(number_of(page)) > 1;
  share(page);
  if (will_store && !page.is_open()) open_for_stores(page, lmw_state::guessed);
}

void lmw::renew_twin(lmw_page& page) {
  if (page.twin == nullptr)
    page.twin = static_cast<std::byte*>(x_.host.memory()->allocate(page_bytes, twin_alignment));
  std::memcpy(page.twin, x_.host.bytes(number_of(page)), page_bytes);
  ++x_.counts->twins;
}

void lmw::drop_twin(lmw_page& page) {
  set_twin_of(page, 0);
  x_.host.memory()->deallocate(page.twin, page_bytes, twin_alignment);
  page.twin = nullptr;
}

/// Sets the interval of the twin, and counts its bytes for collections, which give back the twins
/// of closed intervals and no others.
void lmw::set_twin_of(lmw_page& page, interval closed) {
  if (page.twin_of != 0) bytes_ -= page_bytes;
  if (closed != 0) bytes_ += page_bytes;
  page.twin_of = closed;
}

/// Makes the diff of a closed interval from its twin, and keeps the twin.
own_notice& lmw::note_own_diff(lmw_page& page) {
  own_notice* n = page.history->newest;
  SOJOURN_CHECK(page.twin != nullptr && n != nullptr && n->index == page.twin_of && !n->made,
                "the twin of page %u is of interval %u", number_of(page), page.twin_of);
  std::array<std::byte, diff_bytes_max> scratch;
  const std::size_t size = make_diff(scratch.data(), x_.host.bytes(number_of(page)), page.twin);
  n->made = true;
  ++x_.counts->diffs_made;
  n->bytes = static_cast<std::uint16_t>(size);
  page.dense = size > dense_diff_bytes ? dense_for : 0;
  if (size != 0) {
    n->diff = static_cast<std::byte*>(allocate(size));
    std::memcpy(n->diff, scratch.data(), size);
  }
  if (x_.report != nullptr)
    x_.report->meet(number_of(page), x_.log.find(x_.me, n->index), {scratch.data(), size});
  return *n;
}

void lmw::make_own_diff(lmw_page& page) {
  note_own_diff(page);
  drop_twin(page);
}

/// Leaves the page open when its interval has been closed: from now on it is compared instead of
/// protected.
void lmw::stick(lmw_page& page) {
  // The new twin is the old one with the diff applied, not a copy of the page: if the page is
  // pinned, the system may store to it at this moment, and the diff lacks that.
  const own_notice& n = note_own_diff(page);
  if (n.bytes != 0) apply_diff(page.twin, n.diff, n.bytes);
  ++x_.counts->twins;
  set_twin_of(page, 0);
  if (!page.sticks()) enter(page, lmw_state::sticking);
  page.unchanged = 0;
}

/// Ends comparing the page. Requires: it is equal to its twin, as right after a close.
void lmw::unstick(lmw_page& page) {
  if (!page.is_compared()) return;
  page.listed = 0;
  drop_twin(page);
  end_stores(page);
  set_may(page, access::load);
}

/// Closes an open page. If its copy is useless, the page has none from now on.
void lmw::end_stores(lmw_page& page) {
  const bool keeps_copy = !page.useless;
  page.useless = false;
  enter(page, keeps_copy ? lmw_state::closed : lmw_state::none);
}

void lmw::drop_copy(lmw_page& page) {
  if (!keeps_stores(page)) {
    unstick(page);
    if (page.twin != nullptr) make_own_diff(page);
  }
  if (page.is_open())
    page.useless = true;
  else
    enter(page, lmw_state::none);
  set_may(page, access::none);
  note_lacking(page);
  if (page.history == nullptr) return;
  std::fill_n(has(page), x_.ranks, interval{0});
  page.history->may_lack = true;
  const own_notice* n = page.history->newest;
  const interval at_barrier = x_.barrier[static_cast<std::size_t>(x_.me)];
  if (n != nullptr && n->index > at_barrier && !page.must && holds(rule::fetch_before_arrival)) {
    page.must = true;
    must_.push_back(number_of(page));
  }
}

// --- pins

/// A page that is pinned for stores is compared at each close. Modifications that its copy lacks
/// are fetched at once, and put in place without touching bytes that are stored to meanwhile.
void lmw::pinned(page_number number) {
  lmw_page& page = table_[number].lmw;
  if (page.pinned != access::store) {
    // The pin has ended. What was stored is listed at the next close in any case.
    if (page.state == lmw_state::sticking_for_pin) enter(page, lmw_state::open);
  } else if (page.is_open() && !page.sticks() && holds(rule::pinned_sticks)) {
    // A guessed page is compared anyway, and sticks once a close finds it changed.
    if (page.state == lmw_state::open) enter(page, lmw_state::sticking_for_pin);
    page.unchanged = 0;
  }
}

/// To be called when the copy lacks modifications, or is gone: a pinned page is then brought up to
/// date.
void lmw::note_lacking(lmw_page& page) {
  if (page.pinned == access::none || page.lacks_pinned) return;
  page.lacks_pinned = true;
  lacking_pins_.push_back(number_of(page));
}

void lmw::end_lacking(lmw_page& page) {
  page.lacks_pinned = false;
  while (!lacking_pins_.empty() && !table_[lacking_pins_.back()].lmw.lacks_pinned)
    lacking_pins_.pop_back();
}

void lmw::refresh_pinned() {
  for (page_number number : lacking_pins_) {
    lmw_page& page = table_[number].lmw;
    if (!page.lacks_pinned || page.is_being_fetched() || page.deferred) continue;
    if (stopped_ && holds(rule::no_fetch_after_done)) {
      deferred_.push_back(number);
      page.deferred = true;
    } else {
      start_fetch(page, false);
    }
  }
}

// --- intervals and notices

void lmw::note_own(lmw_page& page, interval index) {
  page_history& h = history_of(page);
  h.newest = ::new (allocate(sizeof(own_notice), alignof(own_notice)))
      own_notice{h.newest, index, false, 0, nullptr};
  // If a fetched page is kept beside the copy, has(page) describes that one, which lacks this
  // interval.
  if (page.fetch == nullptr || page.fetch->whole == nullptr) has(page)[x_.me] = index;
  page.listed = index;
  set_twin_of(page, index);
}

void lmw::list_stores(interval_pages& out) {
  std::sort(open_.begin(), open_.end());
  for (page_number number : open_) {
    lmw_page& page = table_[number].lmw;
    page.is_listed_open = false;
    if (!page.is_open()) continue;
    if (page.is_compared() && !differs(x_.host.bytes(number), page.twin)) {
      if (page.pinned == access::store || ++page.unchanged < unchanged_closes_max) {
        sticking_.push_back(number);
        page.is_listed_open = true;
      } else {
        unstick(page);
      }
      continue;
    }
    if (page.state == lmw_state::guessed)
      enter(page, page.pinned == access::store && holds(rule::pinned_sticks)
                      ? lmw_state::sticking_for_pin
                      : lmw_state::open);
    closing_.push_back(number);
    if (page.readers != 0 && page.dense != 0) --page.dense;
    const bool has_readers = will_be_read_again(page);
    if (!out.ranges.empty() && out.ranges.back().first + out.ranges.back().count == number &&
        (out.ranges.back().has_readers != 0) == has_readers)
      out.ranges.back().count = out.ranges.back().count + 1;
    else
      out.ranges.push_back({number, 1, has_readers});
  }
  open_.swap(sticking_);
  sticking_.clear();
}

void lmw::closed(interval index) {
  for (page_number number : closing_) {
    lmw_page& page = table_[number].lmw;
    const bool again =
        page.sticks() || (page.listed != 0 && page.listed + 1 == index) || will_be_read_again(page);
    const bool is_pinned = page.pinned == access::store && holds(rule::pinned_sticks);
    note_own(page, index);
    if ((settings_.sticking && again) || is_pinned) {
      stick(page);
      list_open(page);
    } else {
      end_stores(page);
      if (holds(rule::protect_at_close)) set_may(page, access::load);
    }
  }
  closing_.clear();
}

void lmw::learn(const interval_record& r) {
  each_page(r, x_.ranks, [&](page_number number) {
    if (number >= table_.size() || x_.layout.protocol_of(number) != protocol_kind::lmw)
      x_.host.refuse(r.owner, "lists a page that is none of this protocol");
    lmw_page& page = entry_of(number);
    ++x_.counts->notices;
    // Shared before the notice is added: until now the exclusive page had everything that was
    // known.
    if (page.is_exclusive()) share(page);
    page_writer& w = writer_of(history_of(page), r.owner);
    w.newest = ::new (allocate(sizeof(foreign_notice), alignof(foreign_notice)))
        foreign_notice{w.newest, r.index};
    page.history->may_lack = true;
    if (page.has_copy()) invalidate(page, r);
  });
}

void lmw::invalidate(lmw_page& page, const interval_record& r) {
  if (has(page)[r.owner] >= r.index) return;
  if (!keeps_stores(page)) unstick(page);
  note_lacking(page);
  if (page.twin != nullptr && !page.is_open() && holds(rule::diff_before_applying))
    make_own_diff(page);
  page.follows = false;  // until a barrier says otherwise
  page.lost = page.lost || page.may != access::none || page.is_being_fetched();
  set_may(page, access::none);
}

}  // namespace sojourn::detail::pages
