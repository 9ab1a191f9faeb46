// SPDX-License-Identifier: Apache-2.0
#include "shared/lmw.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <tuple>

#include "base/check.hpp"
#include "shared/diff.hpp"
#include "shared/rules.hpp"

namespace sojourn::detail::pages {

namespace {

/// This rank has listed the page in an interval. The diff is made when somebody asks.
struct own_notice {
  own_notice* older;
  interval index;
  bool made;
  std::uint16_t bytes;
  std::byte* diff;  ///< Null when it is not made or empty.
};

/// Another rank has listed it.
struct foreign_notice {
  foreign_notice* next;
  const interval_record* of;
};

/// After so many closes without a change, comparing has cost what a fault costs.
constexpr std::uint8_t unchanged_closes_max = 8;

}  // namespace

struct page_history {
  own_notice* newest = nullptr;
  foreign_notice* first = nullptr;
  foreign_notice* last = nullptr;
  /// The copy has everything before this one.
  foreign_notice* lacking = nullptr;
};
// Behind it, for each rank: the copy has its modifications up to this interval.

struct page_fetch {
  struct kept_diff {
    const interval_record* of;
    std::byte* bytes;
    std::uint16_t size;
  };
  explicit page_fetch(std::size_t ranks, std::pmr::memory_resource* memory)
      : after(ranks, 0, memory), up_to(ranks, 0, memory), diffs(memory) {}
  // What has come, or been asked for: the intervals of each rank after `after`, up to `up_to`.
  vector_clock after;
  vector_clock up_to;
  std::pmr::vector<kept_diff> diffs;
};

struct lmw::one_diff {
  const interval_record* of;
  const std::byte* bytes;
  std::size_t size;
};

lmw::lmw(exchange& x, page_table& table, const settings& s)
    : x_(x),
      table_(table),
      settings_(s),
      open_(x.host.memory()),
      closing_(x.host.memory()),
      sticking_(x.host.memory()),
      must_(x.host.memory()),
      deferred_(x.host.memory()),
      listed_(x.host.memory()),
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

page_history& lmw::history_of(lmw_page& a) {
  if (a.history == nullptr) {
    const std::size_t clock = static_cast<std::size_t>(x_.ranks) * sizeof(interval);
    // Not among the bytes that a collection gives back: it stays as long as the page.
    void* block = x_.host.memory()->allocate(sizeof(page_history) + clock, alignof(page_history));
    a.history = ::new (block) page_history;
    std::memset(static_cast<void*>(a.history + 1), 0, clock);
  }
  return *a.history;
}

interval* lmw::has(lmw_page& a) { return reinterpret_cast<interval*>(&history_of(a) + 1); }

// --- protection and states

/// Whether the copy has all modifications that this rank knows of.
/// False while a page that was fetched waits for diffs of others, before which its own that it
/// lacks must not be applied.
bool lmw::has_own(lmw_page& a) {
  if (a.history == nullptr || a.history->newest == nullptr) return true;
  return has(a)[x_.me] >= a.history->newest->index || !holds(rule::page_has_own);
}

bool lmw::is_valid(lmw_page& a) {
  if (!a.copy) return false;
  if (a.exclusive || a.history == nullptr) return true;
  const interval* in_copy = has(a);
  foreign_notice*& n = a.history->lacking;
  while (n != nullptr && n->of->index <= in_copy[n->of->owner]) n = n->next;
  return n == nullptr;
}

/// Lets the fibers that wait for a valid page have what they want.
void lmw::open(lmw_page& a) {
  const access needed = (a.wanted & lmw_page::for_store) != 0 ? access::store : access::load;
  a.fresh = false;
  if (a.exclusive) {
    set_may(a, access::store);
  } else if (needed == access::store) {
    if (!a.open) {
      if (a.twin != nullptr && holds(rule::diff_an_interval)) make_own_diff(a);
      if (a.twin == nullptr) renew_twin(a);
      a.twin_of = 0;
      a.open = true;
      open_.push_back(number_of(a));
    }
    set_may(a, access::store);
  } else if (a.may == access::none) {
    set_may(a, access::load);
  }
  table_.wake(a);
}

/// An exclusive page is about to be served, or another rank has stored to it.
void lmw::share(lmw_page& a) {
  a.exclusive = false;
  a.fresh = false;
  take_later({has(a), static_cast<std::size_t>(x_.ranks)}, x_.log.known());
  if (holds(rule::protect_at_share) && a.may == access::store) set_may(a, access::load);
}

void lmw::renew_twin(lmw_page& a) {
  if (a.twin == nullptr) a.twin = static_cast<std::byte*>(allocate(page_bytes));
  std::memcpy(a.twin, x_.host.bytes(number_of(a)), page_bytes);
  ++x_.counts->twins;
}

void lmw::drop_twin(lmw_page& a) {
  deallocate(a.twin, page_bytes);
  a.twin = nullptr;
  a.twin_of = 0;
}

/// Makes the diff of a closed interval from its twin.
void lmw::make_own_diff(lmw_page& a) {
  own_notice* n = a.history->newest;
  SOJOURN_CHECK(a.twin != nullptr && !a.open && n != nullptr && n->index == a.twin_of && !n->made,
                "the twin of page %u is of interval %u", number_of(a), a.twin_of);
  std::array<std::byte, diff_bytes_max> scratch;
  const std::size_t size = make_diff(scratch.data(), x_.host.bytes(number_of(a)), a.twin);
  n->made = true;
  ++x_.counts->diffs_made;
  n->bytes = static_cast<std::uint16_t>(size);
  if (size != 0) {
    n->diff = static_cast<std::byte*>(allocate(size));
    std::memcpy(n->diff, scratch.data(), size);
  }
  if (x_.report != nullptr)
    x_.report->meet(number_of(a), x_.log.find(x_.me, n->index), {scratch.data(), size});
  drop_twin(a);
}

/// After its interval was closed: from now on the page is compared in place of protected.
void lmw::stick(lmw_page& a) {
  make_own_diff(a);
  renew_twin(a);
  a.open = true;
  a.sticks = true;
  a.unchanged = 0;
}

/// Requires: the interval has just been closed, so there are no open modifications.
void lmw::unstick(lmw_page& a) {
  if (!a.sticks) return;
  end_sticking(a);
  std::erase(open_, number_of(a));
}

void lmw::end_sticking(lmw_page& a) {
  a.sticks = a.open = false;
  a.listed = 0;
  drop_twin(a);
  set_may(a, access::load);
}

void lmw::drop_copy(lmw_page& a) {
  unstick(a);
  if (a.twin != nullptr) make_own_diff(a);
  a.copy = false;
  set_may(a, access::none);
  if (a.history == nullptr) return;
  std::fill_n(has(a), x_.ranks, interval{0});
  a.history->lacking = a.history->first;
  const own_notice* n = a.history->newest;
  const interval at_barrier = x_.barrier[static_cast<std::size_t>(x_.me)];
  if (n != nullptr && n->index > at_barrier && !a.must && holds(rule::fetch_before_arrival)) {
    a.must = true;
    must_.push_back(number_of(a));
  }
}

// --- intervals and notices

void lmw::note_own(lmw_page& a, interval index) {
  page_history& h = history_of(a);
  h.newest = ::new (allocate(sizeof(own_notice))) own_notice{h.newest, index, false, 0, nullptr};
  has(a)[x_.me] = index;
  a.listed = index;
  a.twin_of = index;
  a.open = false;
}

void lmw::list_stores(interval_pages& out) {
  std::sort(open_.begin(), open_.end());
  for (page_number g : open_) {
    lmw_page& a = table_[g].lmw;
    // No fault told of stores to a page that sticks: comparing does.
    if (a.sticks && !differs(x_.host.bytes(g), a.twin)) {
      if (++a.unchanged < unchanged_closes_max)
        sticking_.push_back(g);
      else
        end_sticking(a);
      continue;
    }
    closing_.push_back(g);
    if (!out.ranges.empty() && out.ranges.back().first + out.ranges.back().count == g)
      ++out.ranges.back().count;
    else
      out.ranges.push_back({g, 1});
  }
  open_.swap(sticking_);
  sticking_.clear();
}

void lmw::closed(interval index) {
  for (page_number g : closing_) {
    lmw_page& a = table_[g].lmw;
    const bool sticks =
        settings_.sticking && (a.sticks || (a.listed != 0 && a.listed + 1 == index));
    note_own(a, index);
    if (sticks) {
      stick(a);
      open_.push_back(g);
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
    page_history& h = history_of(a);
    auto* n = ::new (allocate(sizeof(foreign_notice))) foreign_notice{nullptr, &r};
    (h.last == nullptr ? h.first : h.last->next) = n;
    h.last = n;
    if (h.lacking == nullptr) h.lacking = n;
    if (a.copy) invalidate(a, r);
  });
}

void lmw::invalidate(lmw_page& a, const interval_record& r) {
  if (has(a)[r.owner] >= r.index) return;
  unstick(a);
  if (a.twin != nullptr && !a.open && holds(rule::diff_before_applying)) make_own_diff(a);
  set_may(a, access::none);
}

// --- barriers

/// Calls visit(page, record) for each page of each interval after `after`, up to `up_to`.
template <class Visit>
void lmw::each_listed(std::span<const interval> after, std::span<const interval> up_to,
                      Visit visit) {
  for (std::size_t q = 0; q < up_to.size(); ++q)
    for (interval i = after[q] + 1; i <= up_to[q]; ++i) {
      const interval_record& r = x_.log.find(static_cast<int>(q), i);
      each_page(r, x_.ranks, [&](page_number g) { visit(page(g), r); });
    }
}

/// A page that one rank alone has listed since the last barrier becomes that rank's. All ranks
/// decide alike, from the same records.
void lmw::departed() {
  listed_.clear();
  each_listed(x_.previous_barrier, x_.barrier, [&](lmw_page& a, const interval_record& r) {
    if (a.seen != x_.epoch) {
      a.seen = x_.epoch;
      a.several_writers = false;
      listed_.push_back(number_of(a));
    } else {
      if (a.writer != r.owner) {
        if (x_.report != nullptr && x_.host.home(number_of(a)) == x_.me)
          x_.report->several_writers(number_of(a), a.writer, r.owner, !a.several_writers);
        a.several_writers = true;
      }
      if (x_.log.find(a.writer, a.written).order >= r.order) return;
    }
    a.writer = r.owner;
    a.written = r.index;
  });
  if (!settings_.exclusive) return;
  for (page_number g : listed_) {
    lmw_page& a = table_[g].lmw;
    if (a.several_writers) continue;
    a.keeper = a.writer;
    const bool fetching = a.fetching != lmw_page::fetch_kind::none;
    if (a.writer != x_.me) {
      if (fetching && holds(rule::drop_fetches_in_flight)) a.outdated = true;
      if (a.copy && holds(rule::drop_at_exclusive)) drop_copy(a);
      continue;
    }
    if (!a.copy) continue;
    if ((!is_valid(a) || fetching) && holds(rule::exclusive_only_if_valid)) continue;
    unstick(a);
    if (a.twin != nullptr) drop_twin(a);
    a.thrown = x_.log.mine();
    a.exclusive = true;
    set_may(a, access::store);
  }
}

void lmw::fetch_what_must() {
  for (page_number g : must_) {
    lmw_page& a = table_[g].lmw;
    if (a.copy)
      a.must = false;
    else if (a.fetching == lmw_page::fetch_kind::none && !stopped_)
      start_fetch(a, true);
  }
  std::erase_if(must_, [&](page_number g) { return !table_[g].lmw.must; });
}

/// Each page's keeper is the rank that stored to it last in the last epoch in which anybody did, on
/// all ranks alike: it has a copy. (One that stored to it before that may have dropped its copy
/// since, even if its interval has the greater order.)
void lmw::begin_collection() {
  listed_.clear();
  each_listed(x_.log.collected(), x_.barrier, [&](lmw_page& a, const interval_record& r) {
    // Once each.
    if (r.owner == a.writer && r.index == a.written) listed_.push_back(number_of(a));
  });
  for (page_number g : listed_) {
    lmw_page& a = table_[g].lmw;
    a.keeper = a.writer;
    const bool fetching = a.fetching != lmw_page::fetch_kind::none;
    if (a.keeper == x_.me) {
      if (!is_valid(a) && !fetching) start_fetch(a, false);
    } else if (a.copy && !is_valid(a) && !fetching && holds(rule::drop_at_collection)) {
      drop_copy(a);
    }
  }
}

bool lmw::fetches_in_progress() const {
  if (holds(rule::wait_for_fetches_before_done)) return fetches_ != 0;
  // Else those that the collection itself has begun: of what is kept here.
  for (page_number g = 0; g < table_.size(); ++g) {
    const lmw_page& a = table_[g].lmw;
    if (x_.host.protocol_of(g) == protocol_kind::lmw && a.keeper == x_.me &&
        a.fetching != lmw_page::fetch_kind::none)
      return true;
  }
  return false;
}

void lmw::end_collection() {
  stopped_ = false;
  const vector_clock& up_to = x_.barrier;
  const interval mine = up_to[static_cast<std::size_t>(x_.me)];
  each_listed(x_.log.collected(), up_to, [&](lmw_page& a, const interval_record&) {
    if (a.history == nullptr) return;
    page_history& h = *a.history;
    if (a.twin != nullptr && !a.open && a.twin_of <= mine) drop_twin(a);
    a.thrown = std::max(a.thrown, mine);
    own_notice** n = &h.newest;
    while (*n != nullptr && (*n)->index > mine) n = &(*n)->older;
    while (own_notice* gone = *n) {
      *n = gone->older;
      if (gone->diff != nullptr) deallocate(gone->diff, gone->bytes);
      deallocate(gone, sizeof *gone);
    }
    foreign_notice** f = &h.first;
    h.last = nullptr;
    while (foreign_notice* at = *f) {
      if (at->of->index > up_to[at->of->owner]) {
        h.last = at;
        f = &at->next;
        continue;
      }
      *f = at->next;
      deallocate(at, sizeof *at);
    }
    h.lacking = h.first;
  });
  fetch_what_must();
  std::pmr::vector<page_number> later(deferred_, x_.host.memory());
  deferred_.clear();
  for (page_number g : later) {
    lmw_page& a = table_[g].lmw;
    a.deferred = false;
    if (a.fetching != lmw_page::fetch_kind::none) continue;
    if (is_valid(a))
      open(a);
    else
      start_fetch(a, (a.wanted & lmw_page::for_store) != 0);
  }
}

// --- faults

void lmw::fault(page_number g, bool store, bool /*again*/) {
  lmw_page& a = page(g);
  a.wanted |= store ? lmw_page::for_store : lmw_page::for_load;
  if (a.fetching != lmw_page::fetch_kind::none) {
    ++x_.counts->faults_joined;
    return;
  }
  if (is_valid(a)) {
    ++x_.counts->faults_local;
    return open(a);
  }
  ++x_.counts->faults_remote;
  x_.count_overlap();
  if (stopped_ && holds(rule::no_fetch_after_done)) {
    if (!a.deferred) deferred_.push_back(g);
    a.deferred = true;
    return;
  }
  fetch_with_neighbours(g);
}

void lmw::fetch_with_neighbours(page_number g) {
  const lmw_page& a = table_[g].lmw;
  const bool store = (a.wanted & lmw_page::for_store) != 0;
  const int keeper = a.keeper;
  start_fetch(table_[g].lmw, store);
  const std::uint32_t count = x_.host.fetched_together(g);
  for (std::uint32_t i = 1; i < count; ++i) {
    lmw_page& b = page(g + i);
    const bool fetching = b.fetching != lmw_page::fetch_kind::none;
    if (!fetching && !is_valid(b) && (b.copy || b.keeper == keeper)) start_fetch(b, store);
  }
}

/// `store`: a page that nobody has touched may be given to this rank as its own.
void lmw::start_fetch(lmw_page& a, bool store) {
  SOJOURN_CHECK(a.fetch == nullptr, "page %u is fetched twice", number_of(a));
  a.fetch = ::new (allocate(sizeof(page_fetch)))
      page_fetch(static_cast<std::size_t>(x_.ranks), x_.host.memory());
  ++fetches_;
  ++x_.faults_under_way;
  a.missing = 0;
  if (a.copy) {
    a.fetching = lmw_page::fetch_kind::diffs;
    ask_for_diffs(a);
    return;
  }
  SOJOURN_CHECK(a.keeper != x_.me, "page %u is kept here, and there is no copy", number_of(a));
  a.fetching = lmw_page::fetch_kind::page;
  a.missing = 1;
  requests_.push_back({a.keeper, page_message::page_request, store, number_of(a), 0, 0});
}

/// Asks, at once, each rank whose diffs are neither in the copy nor here; false when there is none.
bool lmw::ask_for_diffs(lmw_page& a) {
  const interval* in_copy = has(a);
  const vector_clock& known = x_.log.known();
  page_fetch& f = *a.fetch;
  // The first interval of each rank that lists the page and is lacking. A rank's notices are in
  // order, those of different ranks are not.
  vector_clock first(static_cast<std::size_t>(x_.ranks), 0, x_.host.memory());
  for (const foreign_notice* n = a.history->lacking; n != nullptr; n = n->next) {
    const std::size_t q = n->of->owner;
    if (n->of->index > in_copy[q] && first[q] == 0) first[q] = n->of->index;
  }
  bool any = false;
  for (std::size_t q = 0; q < first.size(); ++q) {
    if (first[q] == 0 || (first[q] > f.after[q] && known[q] <= f.up_to[q])) continue;
    any = true;
    ++a.missing;
    requests_.push_back({static_cast<int>(q), page_message::diff_request, false, number_of(a),
                         holds(rule::ask_from_first_lacking) ? first[q] : in_copy[q] + 1,
                         known[q]});
  }
  return any;
}

void lmw::send_requests() {
  if (requests_.empty()) return;
  std::pmr::vector<request> all(x_.host.memory());
  all.swap(requests_);
  // Not stable_sort, which takes memory from malloc.
  std::sort(all.begin(), all.end(), [](const request& x, const request& y) {
    return std::tuple(x.to, x.what, x.page) < std::tuple(y.to, y.what, y.page);
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
      if (r.what == page_message::page_request) {
        out.put(static_cast<std::uint32_t>(r.store));
        continue;
      }
      out.put(r.first);
      out.put(r.last);
      out.put_clock({has(table_[r.page].lmw), static_cast<std::size_t>(x_.ranks)});
    }
    x_.send(all[end - 1].to);
  }
}

/// All replies to what was asked for are in: perhaps more has come to be known meanwhile.
void lmw::reply_came(lmw_page& a) {
  if (--a.missing != 0) return;
  if (a.outdated || !a.copy) {
    a.outdated = false;
    const bool store = (a.wanted & lmw_page::for_store) != 0;
    end_fetch(a);
    start_fetch(a, store);
    return;
  }
  const bool nothing_yet =
      std::all_of(a.fetch->up_to.begin(), a.fetch->up_to.end(), [](interval i) { return i == 0; });
  if ((holds(rule::fetch_until_nothing_lacks) || nothing_yet) && ask_for_diffs(a)) return;
  apply_all(a);
  end_fetch(a);
  if (a.must) {
    a.must = false;
    std::erase(must_, number_of(a));
  }
  open(a);
}

void lmw::end_fetch(lmw_page& a) {
  for (const page_fetch::kept_diff& d : a.fetch->diffs)
    if (d.bytes != nullptr) deallocate(d.bytes, d.size);
  a.fetch->~page_fetch();
  deallocate(a.fetch, sizeof(page_fetch));
  a.fetch = nullptr;
  a.fetching = lmw_page::fetch_kind::none;
  --fetches_;
  --x_.faults_under_way;
}

/// Applies what came, and what this rank did itself and a fetched page lacks, in an order in which
/// what happened before comes before.
void lmw::apply_all(lmw_page& a) {
  interval* in_copy = has(a);
  std::pmr::vector<one_diff> todo(x_.host.memory());
  for (const page_fetch::kept_diff& d : a.fetch->diffs)
    if (d.of->index > in_copy[d.of->owner]) todo.push_back({d.of, d.bytes, d.size});
  if (holds(rule::apply_own_too))
    for (const own_notice* n = a.history->newest; n != nullptr && n->index > in_copy[x_.me];
         n = n->older) {
      SOJOURN_CHECK(n->made, "the diff of interval %u of page %u was not made", n->index,
                    number_of(a));
      todo.push_back({&x_.log.find(x_.me, n->index), n->diff, n->bytes});
    }
  std::sort(todo.begin(), todo.end(), [](const one_diff& x, const one_diff& y) {
    if (!holds(rule::apply_in_order))
      return std::tuple(x.of->owner, x.of->index) < std::tuple(y.of->owner, y.of->index);
    return std::tuple(x.of->order, x.of->owner) < std::tuple(y.of->order, y.of->owner);
  });
  std::byte* bytes = x_.host.bytes(number_of(a));
  for (const one_diff& d : todo) {
    if (d.size != 0) apply_diff(bytes, d.bytes, d.size);
    ++x_.counts->diffs_applied;
    x_.counts->diff_bytes_applied += d.size;
    if (x_.report != nullptr) x_.report->meet(number_of(a), *d.of, {d.bytes, d.size});
  }
  const vector_clock& known = x_.log.known();
  for (std::size_t q = 0; q < known.size(); ++q) {
    const bool all = static_cast<int>(q) == x_.me || holds(rule::fetch_until_nothing_lacks);
    in_copy[q] = std::max(in_copy[q], all ? known[q] : a.fetch->up_to[q]);
  }
}

// --- serving

void lmw::serve_page(lmw_page& a, int to) {
  a.fresh = false;
  if (a.exclusive) share(a);
  message_writer& out = x_.begin({.what = page_message::page_reply, .number = number_of(a)});
  // All own closed modifications are in the page; its open ones are not in the twin.
  interval* in_copy = has(a);
  const interval own = in_copy[x_.me];
  if (has_own(a)) in_copy[x_.me] = x_.log.mine();
  out.put_clock({in_copy, static_cast<std::size_t>(x_.ranks)});
  in_copy[x_.me] = own;
  const std::byte* from =
      a.open && holds(rule::serve_the_twin) ? a.twin : x_.host.bytes(number_of(a));
  x_.send(to, {from, page_bytes});
}

void lmw::serve_diffs(lmw_page& a, int to, interval first, interval last,
                      std::span<const interval> theirs) {
  std::size_t total = 0;
  std::uint32_t count = 0;
  const auto each = [&](auto visit) {
    if (a.history == nullptr) return;
    for (own_notice* n = a.history->newest; n != nullptr && n->index >= first; n = n->older)
      if (n->index <= last) visit(*n);
  };
  if (first > a.thrown) {
    each([&](own_notice& n) {
      if (!n.made) make_own_diff(a);
      total += n.bytes;
      ++count;
    });
  }
  bool has_all = a.copy && has_own(a);
  for (std::size_t q = 0; q < theirs.size() && has_all && holds(rule::page_has_all); ++q)
    has_all = static_cast<int>(q) == x_.me || a.exclusive || has(a)[q] >= theirs[q];
  const bool gone = first <= a.thrown;
  if (gone || (settings_.whole_pages && has_all && total > page_bytes)) {
    if (a.copy) return serve_page(a, to);
    SOJOURN_CHECK(a.keeper != x_.me, "page %u is kept here, and there is no copy", number_of(a));
    message_writer& out = x_.begin(
        {.what = page_message::page_request, .rank = static_cast<std::uint16_t>(to), .number = 1});
    out.put(number_of(a));
    out.put(std::uint32_t{0});
    return x_.send(a.keeper);
  }
  message_writer& out = x_.begin(
      {.what = page_message::diff_reply, .number = number_of(a), .first = first, .last = last});
  out.put(count);
  each([&](const own_notice& n) {
    out.put(n.index);
    out.put(std::uint32_t{n.bytes});
    out.put_bytes(n.diff, n.bytes);
  });
  x_.send(to);
}

lmw_page& lmw::checked_page(const page_message_reader& from, page_number g) {
  return page(table_.checked(from, g, protocol_kind::lmw));
}

void lmw::receive(page_message_reader& from, const message_head& head) {
  switch (head.what) {
    case page_message::page_request:
      for (std::uint32_t i = 0; i < head.number; ++i) {
        lmw_page& a = checked_page(from, from.take<page_number>());
        const auto store = from.take<std::uint32_t>();
        if (!a.copy) {
          from.require(a.keeper != x_.me, "asks for a page that this rank keeps and does not have");
          message_writer& out =
              x_.begin({.what = page_message::page_request, .rank = head.rank, .number = 1});
          out.put(number_of(a));
          out.put(store);
          x_.send(a.keeper);
        } else if (a.fresh && store != 0) {
          // Given away, without its zeros. Later requests are passed on.
          a.fresh = a.exclusive = a.copy = false;
          a.keeper = head.rank;
          x_.begin({.what = page_message::page_reply, .flag = 1, .number = number_of(a)});
          x_.send(head.rank);
        } else {
          serve_page(a, head.rank);
        }
      }
      return;
    case page_message::diff_request: {
      vector_clock theirs(static_cast<std::size_t>(x_.ranks), 0, x_.host.memory());
      for (std::uint32_t i = 0; i < head.number; ++i) {
        lmw_page& a = checked_page(from, from.take<page_number>());
        const auto first = from.take<interval>();
        const auto last = from.take<interval>();
        from.take_clock(theirs);
        from.require(first != 0 && first <= last, "asks for diffs of no interval");
        from.require(last <= x_.log.mine(), "asks for diffs of an interval that is not closed");
        serve_diffs(a, from.from(), first, last, theirs);
      }
      return;
    }
    case page_message::page_reply: {
      lmw_page& a = checked_page(from, head.number);
      from.require(a.missing != 0, "sends a page that was not asked for");
      return take_page(from, head, a);
    }
    case page_message::diff_reply: {
      lmw_page& a = checked_page(from, head.number);
      from.require(a.missing != 0, "sends diffs that were not asked for");
      return take_diffs(from, head, a);
    }
    default:
      from.refuse("is of another protocol");
  }
}

void lmw::take_page(page_message_reader& from, const message_head& head, lmw_page& a) {
  if (head.flag != 0) {
    from.require(!a.copy && !a.outdated, "gives away a page that is here");
    a.copy = a.exclusive = true;
    a.keeper = static_cast<std::uint16_t>(x_.me);
    end_fetch(a);
    if (a.must) {
      a.must = false;
      std::erase(must_, number_of(a));
    }
    open(a);
    return;
  }
  if (!a.outdated) {
    if (a.copy && a.twin != nullptr) make_own_diff(a);
    a.copy = true;
    page_history& h = history_of(a);
    from.take_clock({has(a), static_cast<std::size_t>(x_.ranks)});
    if (!holds(rule::apply_own_too)) has(a)[x_.me] = x_.log.mine();
    h.lacking = h.first;
    std::memcpy(x_.host.bytes(number_of(a)), from.take_bytes(page_bytes).data(), page_bytes);
    ++x_.counts->pages_fetched;
    a.fetching = lmw_page::fetch_kind::diffs;
  }
  reply_came(a);
}

void lmw::take_diffs(page_message_reader& from, const message_head& head, lmw_page& a) {
  if (!a.outdated) {
    page_fetch& f = *a.fetch;
    const auto q = static_cast<std::size_t>(from.from());
    from.require(head.last <= x_.log.known()[q], "sends diffs of intervals that are not known");
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
  reply_came(a);
}

}  // namespace sojourn::detail::pages
