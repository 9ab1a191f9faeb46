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

lmw_page& lmw::page(page_number g) {
  lmw_page& a = table_[g].lmw;
  if (a.known) [[likely]]
    return a;
  const int home = x_.host.home(g);
  a.known = true;
  a.keeper = static_cast<std::uint16_t>(home);
  if (home == x_.me) {
    a.copy = true;
    a.exclusive = settings_.exclusive;
    a.fresh = settings_.claims && a.exclusive;
    if (!a.exclusive) history_of(a);
  }
  return a;
}

std::size_t lmw::history_bytes() const {
  return sizeof(page_history) + static_cast<std::size_t>(x_.ranks) * sizeof(interval);
}

page_history& lmw::history_of(lmw_page& a) {
  if (a.history == nullptr) {
    a.history = ::new (allocate(history_bytes(), alignof(page_history))) page_history;
    std::memset(static_cast<void*>(a.history + 1), 0, history_bytes() - sizeof(page_history));
  }
  return *a.history;
}

page_writer& lmw::writer_of(page_history& h, int rank) {
  for (page_writer* w = h.writers; w != nullptr; w = w->next)
    if (w->rank == rank) return *w;
  void* block = allocate(sizeof(page_writer), alignof(page_writer));
  return *(h.writers = ::new (block) page_writer{h.writers, nullptr, rank});
}

interval* lmw::has(lmw_page& a) { return reinterpret_cast<interval*>(&history_of(a) + 1); }

// --- protection and states

/// Whether the copy has this rank's own modifications. It lacks them while a page that was fetched
/// waits for the diffs of other ranks: those must be applied before this rank's own.
bool lmw::has_own(lmw_page& a) {
  if (a.history == nullptr || a.history->newest == nullptr) return true;
  return has(a)[x_.me] >= a.history->newest->index || !holds(rule::page_has_own);
}

/// Whether the copy has all modifications that this rank knows of.
bool lmw::is_valid(lmw_page& a) {
  if (!a.copy) return false;
  if (a.exclusive || a.history == nullptr) return true;
  if (!a.history->may_lack) return true;
  const interval* in_copy = has(a);
  for (const page_writer* w = a.history->writers; w != nullptr; w = w->next)
    if (w->newest != nullptr && w->newest->index > in_copy[w->rank]) return false;
  a.history->may_lack = false;
  return true;
}

/// Lets the fibers that wait for a valid page have what they want.
void lmw::open(lmw_page& a) {
  if (a.on_trial && a.wanted == 0 && a.pinned == access::none) return;
  a.on_trial = false;
  const access needed = (a.wanted & lmw_page::for_store) != 0 ? access::store : access::load;
  a.fresh = false;
  if (a.exclusive) {
    set_may(a, access::store);
  } else if (needed == access::store) {
    if (!a.open) open_with_neighbours(a);
    set_may(a, access::store);
  } else if (a.may == access::none) {
    set_may(a, access::load);
  }
  table_.wake(a);
  if (a.lacks_pinned) end_lacking(a);
}

void lmw::open_for_stores(lmw_page& a) {
  if (a.twin != nullptr && holds(rule::diff_an_interval)) make_own_diff(a);
  if (a.twin == nullptr) renew_twin(a);
  set_twin_of(a, 0);
  a.open = true;
  a.unchanged = 0;
  list_open(a);
  set_may(a, access::store);
}

void lmw::list_open(lmw_page& a) {
  if (!a.is_listed_open) open_.push_back(number_of(a));
  a.is_listed_open = true;
}

/// This rank alone stored to both from one barrier to the next, and has stored to neither since.
bool lmw::is_stored_to_with(const lmw_page& a, const lmw_page& b) const {
  const auto is_own = [&](const lmw_page& p) {
    return p.seen != 0 && !p.several_writers && p.writer == x_.me;
  };
  return is_own(a) && is_own(b) && a.seen == b.seen;
}

/// The pages behind it that this rank stored to together with it are opened, too: a twin costs a
/// tenth of a fault. Those to which nobody stores this time are closed again with the interval.
void lmw::open_with_neighbours(lmw_page& a) {
  open_for_stores(a);
  const page_number g = number_of(a);
  const std::uint32_t most = x_.host.together_at_most(g);
  for (std::uint32_t i = 1; i < most; ++i) {
    lmw_page& b = page(g + i);
    if (b.open) continue;
    // What is pinned allows loads even while it lacks something.
    if (b.may != access::load || b.exclusive || !is_stored_to_with(a, b) || !is_valid(b) ||
        b.fetching != lmw_page::fetch_kind::none)
      return;
    open_for_stores(b);
    b.guessed = true;
  }
}

/// An exclusive page is so no longer: it is about to be served, or another rank has stored to it.
void lmw::share(lmw_page& a) {
  a.exclusive = false;
  a.fresh = false;
  take_later({has(a), static_cast<std::size_t>(x_.ranks)}, x_.log.known());
  if (a.pinned == access::store && holds(rule::stick_at_share)) return stick_for_pin(a);
  if (holds(rule::protect_at_share) && a.may == access::store) set_may(a, access::load);
}

/// An exclusive page is about to be served. If this rank has stored to it lately, it will again, so
/// it is left open: a twin costs less than a fault.
void lmw::share_with_reader(lmw_page& a) {
  const bool will_store = a.may == access::store && a.writer == x_.me && a.seen != 0 &&
                          x_.epoch - a.seen < epochs_of_a_guess &&
                          x_.host.together_at_most(number_of(a)) > 1;
  share(a);
  if (!will_store || a.open) return;
  open_for_stores(a);
  a.guessed = true;
}

void lmw::renew_twin(lmw_page& a) {
  if (a.twin == nullptr)
    a.twin = static_cast<std::byte*>(x_.host.memory()->allocate(page_bytes, twin_alignment));
  std::memcpy(a.twin, x_.host.bytes(number_of(a)), page_bytes);
  ++x_.counts->twins;
}

void lmw::drop_twin(lmw_page& a) {
  set_twin_of(a, 0);
  x_.host.memory()->deallocate(a.twin, page_bytes, twin_alignment);
  a.twin = nullptr;
}

/// A collection gives back twins of closed intervals, and no others.
void lmw::set_twin_of(lmw_page& a, interval closed) {
  if (a.twin_of != 0) bytes_ -= page_bytes;
  if (closed != 0) bytes_ += page_bytes;
  a.twin_of = closed;
}

/// Makes the diff of a closed interval from its twin, which stays.
own_notice& lmw::note_own_diff(lmw_page& a) {
  own_notice* n = a.history->newest;
  SOJOURN_CHECK(a.twin != nullptr && !a.open && n != nullptr && n->index == a.twin_of && !n->made,
                "the twin of page %u is of interval %u", number_of(a), a.twin_of);
  std::array<std::byte, diff_bytes_max> scratch;
  const std::size_t size = make_diff(scratch.data(), x_.host.bytes(number_of(a)), a.twin);
  n->made = true;
  ++x_.counts->diffs_made;
  n->bytes = static_cast<std::uint16_t>(size);
  a.dense = size > dense_diff_bytes ? dense_for : 0;
  if (size != 0) {
    n->diff = static_cast<std::byte*>(allocate(size));
    std::memcpy(n->diff, scratch.data(), size);
  }
  if (x_.report != nullptr)
    x_.report->meet(number_of(a), x_.log.find(x_.me, n->index), {scratch.data(), size});
  return *n;
}

void lmw::make_own_diff(lmw_page& a) {
  note_own_diff(a);
  drop_twin(a);
}

/// After its interval was closed: from now on the page is compared in place of protected.
void lmw::stick(lmw_page& a) {
  // The twin becomes what the diff says, not what the page is by now: the system may be storing to
  // a page that is pinned.
  const own_notice& n = note_own_diff(a);
  if (n.bytes != 0) apply_diff(a.twin, n.diff, n.bytes);
  ++x_.counts->twins;
  set_twin_of(a, 0);
  a.open = true;
  a.sticks = true;
  a.unchanged = 0;
}

/// Requires: the interval has just been closed, so there are no open modifications.
void lmw::unstick(lmw_page& a) {
  if (a.sticks || a.guessed) end_sticking(a);
}

void lmw::end_sticking(lmw_page& a) {
  a.sticks = a.sticks_for_pin = a.guessed = a.open = false;
  a.listed = 0;
  drop_twin(a);
  set_may(a, access::load);
}

void lmw::drop_copy(lmw_page& a) {
  if (!keeps_stores(a)) {
    unstick(a);
    if (a.twin != nullptr) make_own_diff(a);
  }
  a.copy = false;
  set_may(a, access::none);
  note_lacking(a);
  if (a.history == nullptr) return;
  std::fill_n(has(a), x_.ranks, interval{0});
  a.history->may_lack = true;
  const own_notice* n = a.history->newest;
  const interval at_barrier = x_.barrier[static_cast<std::size_t>(x_.me)];
  if (n != nullptr && n->index > at_barrier && !a.must && holds(rule::fetch_before_arrival)) {
    a.must = true;
    must_.push_back(number_of(a));
  }
}

// --- pins

/// A page that is pinned for stores is compared at each close. What its copy lacks is fetched at
/// once, and put in place beside what is stored meanwhile.
void lmw::pinned(page_number g) {
  lmw_page& a = table_[g].lmw;
  if (a.pinned != access::store) {
    // What was stored is listed at the next close in any case.
    if (a.sticks_for_pin) a.sticks = a.sticks_for_pin = false;
  } else if (a.open && !a.sticks && holds(rule::pinned_sticks)) {
    a.sticks = a.sticks_for_pin = true;
    a.unchanged = 0;
  }
}

/// It has been exclusive: what is stored from now on is seen by comparing.
void lmw::stick_for_pin(lmw_page& a) {
  renew_twin(a);
  set_twin_of(a, 0);
  a.open = a.sticks = a.sticks_for_pin = true;
  a.unchanged = 0;
  list_open(a);
}

/// The copy lacks modifications, or is gone: a pinned one must not.
void lmw::note_lacking(lmw_page& a) {
  if (a.pinned == access::none) return;
  if (a.lacks_pinned) return;
  a.lacks_pinned = true;
  lacking_pins_.push_back(number_of(a));
}

void lmw::end_lacking(lmw_page& a) {
  a.lacks_pinned = false;
  while (!lacking_pins_.empty() && !table_[lacking_pins_.back()].lmw.lacks_pinned)
    lacking_pins_.pop_back();
}

void lmw::refresh_pinned() {
  for (page_number g : lacking_pins_) {
    lmw_page& a = table_[g].lmw;
    if (!a.lacks_pinned || a.fetching != lmw_page::fetch_kind::none || a.deferred) continue;
    if (stopped_ && holds(rule::no_fetch_after_done)) {
      deferred_.push_back(g);
      a.deferred = true;
    } else {
      start_fetch(a, false);
    }
  }
}

// --- intervals and notices

void lmw::note_own(lmw_page& a, interval index) {
  page_history& h = history_of(a);
  h.newest = ::new (allocate(sizeof(own_notice), alignof(own_notice)))
      own_notice{h.newest, index, false, 0, nullptr};
  // A page that waits beside this one does not have it, and what it has is noted already.
  if (a.fetch == nullptr || a.fetch->whole == nullptr) has(a)[x_.me] = index;
  a.listed = index;
  set_twin_of(a, index);
  a.open = false;
}

void lmw::list_stores(interval_pages& out) {
  std::sort(open_.begin(), open_.end());
  for (page_number g : open_) {
    lmw_page& a = table_[g].lmw;
    a.is_listed_open = false;
    if (!a.open) continue;
    // No fault told of stores to these pages: comparing does.
    if ((a.sticks || a.guessed) && !differs(x_.host.bytes(g), a.twin)) {
      if (a.pinned == access::store || ++a.unchanged < unchanged_closes_max) {
        sticking_.push_back(g);
        a.is_listed_open = true;
      } else {
        end_sticking(a);
      }
      continue;
    }
    a.guessed = false;
    closing_.push_back(g);
    if (a.readers != 0 && a.dense != 0) --a.dense;
    const bool has_readers = will_be_read_again(a);
    if (!out.ranges.empty() && out.ranges.back().first + out.ranges.back().count == g &&
        (out.ranges.back().has_readers != 0) == has_readers)
      out.ranges.back().count = out.ranges.back().count + 1;
    else
      out.ranges.push_back({g, 1, has_readers});
  }
  open_.swap(sticking_);
  sticking_.clear();
}

void lmw::closed(interval index) {
  for (page_number g : closing_) {
    lmw_page& a = table_[g].lmw;
    const bool again =
        a.sticks || (a.listed != 0 && a.listed + 1 == index) || will_be_read_again(a);
    const bool sticks = (settings_.sticking && again) || keeps_stores(a);
    note_own(a, index);
    if (sticks) {
      stick(a);
      list_open(a);
    } else if (holds(rule::protect_at_close)) {
      set_may(a, access::load);
    }
  }
  closing_.clear();
}

void lmw::learn(const interval_record& r) {
  each_page(r, x_.ranks, [&](page_number g) {
    if (g >= table_.size() || x_.host.protocol_of(g) != protocol_kind::lmw)
      x_.host.refuse(r.owner, "lists a page that is none of this protocol");
    lmw_page& a = page(g);
    ++x_.counts->notices;
    // Before the notice is noted: an exclusive page has all that was known before.
    if (a.copy && a.exclusive) share(a);
    page_writer& w = writer_of(history_of(a), r.owner);
    w.newest = ::new (allocate(sizeof(foreign_notice), alignof(foreign_notice)))
        foreign_notice{w.newest, r.index};
    a.history->may_lack = true;
    if (a.copy) invalidate(a, r);
  });
}

void lmw::invalidate(lmw_page& a, const interval_record& r) {
  if (has(a)[r.owner] >= r.index) return;
  if (!keeps_stores(a)) unstick(a);
  note_lacking(a);
  if (a.twin != nullptr && !a.open && holds(rule::diff_before_applying)) make_own_diff(a);
  a.follows = false;  // until a barrier says otherwise
  a.lost = a.lost || a.may != access::none || a.fetching != lmw_page::fetch_kind::none;
  set_may(a, access::none);
}

}  // namespace sojourn::detail::pages
