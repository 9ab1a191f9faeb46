// SPDX-License-Identifier: Apache-2.0
// Barriers and collections under lmw: which pages become exclusive, what is fetched at once, and
// what may be given back.
#include <algorithm>

#include "shared/pages/lmw.hpp"
#include "shared/pages/lmw_parts.hpp"
#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

/// Calls visit(page, record, has readers) for each page of each interval after `after`, up to
/// `up_to`.
template <class Visit>
void lmw::each_listed(std::span<const interval> after, std::span<const interval> up_to,
                      Visit visit) {
  for (std::size_t q = 0; q < up_to.size(); ++q)
    for (interval i = after[q] + 1; i <= up_to[q]; ++i) {
      const interval_record& r = x_.log.find(static_cast<int>(q), i);
      each_page(r, x_.ranks,
                [&](page_number g, bool has_readers) { visit(page(g), r, has_readers); });
    }
}

/// A page that one rank alone has listed since the last barrier becomes that rank's. All ranks
/// decide alike, from the same records.
void lmw::departed() {
  listed_.clear();
  ahead_.clear();
  pulls_due_ = 0;
  exchange_is_over_ = false;
  each_listed(x_.previous_barrier, x_.barrier,
              [&](lmw_page& a, const interval_record& r, bool has_readers) {
                if (a.seen != x_.epoch) {
                  a.seen = x_.epoch;
                  a.several_writers = false;
                  a.has_readers = has_readers;
                  listed_.push_back(number_of(a));
                } else {
                  a.has_readers = a.has_readers || has_readers;
                  if (a.writer != r.owner) {
                    if (x_.report != nullptr && x_.host.home(number_of(a)) == x_.me)
                      x_.report->several_writers(number_of(a), a.writer, r.owner,
                                                 !a.several_writers);
                    a.several_writers = true;
                  }
                  if (x_.log.find(a.writer, a.written).order >= r.order) return;
                }
                a.writer = r.owner;
                a.written = r.index;
              });
  for (page_number g : listed_) {
    lmw_page& a = table_[g].lmw;
    const bool has_readers = holds(rule::agree_on_readers) ? a.has_readers : a.readers != 0;
    const bool stays_shared = a.several_writers || has_readers;
    if (a.copy && (stays_shared ? a.lost && !is_valid(a) : a.writer != x_.me)) {
      a.follows = !a.on_trial;
      if (a.follows) ahead_.push_back(g);
    } else if (is_own_of_epoch(a) && x_.host.together_at_most(g) > 1) {
      pulls_due_ += std::min<std::uint32_t>(a.readers, static_cast<std::uint32_t>(x_.ranks) - 1);
    }
    a.readers = 0;
    a.on_trial = a.lost = false;
    if (stays_shared || !settings_.exclusive) continue;
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

void lmw::fetch_ahead() {
  for (page_number g : ahead_) {
    if (pulls_under_way_ == pulls_max) break;
    lmw_page& a = table_[g].lmw;
    if (a.fetching != lmw_page::fetch_kind::none || is_valid(a) || x_.host.together_at_most(g) <= 1)
      continue;
    a.pulled = true;
    ++pulls_under_way_;
    start_fetch(a, false);
    a.on_trial = a.brought++ % brings_for_a_trial == 0;
  }
  // Who will not ask for all of its pages at once is not waited for longer than for so many.
  pulls_due_ = std::min<std::uint32_t>(pulls_due_, pulls_max);
}

/// Each page's keeper is the rank that stored to it last in the last epoch in which anybody did, on
/// all ranks alike: it has a copy. (One that stored to it before that may have dropped its copy
/// since, even if its interval has the greater order.)
void lmw::begin_collection() {
  listed_.clear();
  each_listed(x_.log.collected(), x_.barrier, [&](lmw_page& a, const interval_record& r, bool) {
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

/// Of a page that is not here nothing need be known but whom to ask for it, once its notices are
/// gone: a program's pages are many, and a rank uses few.
void lmw::forget_history(lmw_page& a) {
  page_history* const h = a.history;
  if (a.copy || a.fetch != nullptr || h->newest != nullptr) return;
  for (const page_writer* w = h->writers; w != nullptr; w = w->next)
    if (w->newest != nullptr) return;
  while (page_writer* gone = h->writers) {
    h->writers = gone->next;
    deallocate(gone, sizeof *gone, alignof(page_writer));
  }
  a.history = nullptr;
  deallocate(h, history_bytes(), alignof(page_history));
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
  each_listed(x_.log.collected(), up_to, [&](lmw_page& a, const interval_record&, bool) {
    if (a.history == nullptr) return;
    page_history& h = *a.history;
    if (a.twin != nullptr && !a.open && a.twin_of <= mine) drop_twin(a);
    a.thrown = std::max(a.thrown, mine);
    own_notice** n = &h.newest;
    while (*n != nullptr && (*n)->index > mine) n = &(*n)->older;
    while (own_notice* gone = *n) {
      *n = gone->older;
      if (gone->diff != nullptr) deallocate(gone->diff, gone->bytes);
      deallocate(gone, sizeof *gone, alignof(own_notice));
    }
    for (page_writer* w = h.writers; w != nullptr; w = w->next) {
      foreign_notice** f = &w->newest;
      while (*f != nullptr && (*f)->index > up_to[static_cast<std::size_t>(w->rank)])
        f = &(*f)->older;
      while (foreign_notice* gone = *f) {
        *f = gone->older;
        deallocate(gone, sizeof *gone, alignof(foreign_notice));
      }
    }
    forget_history(a);
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

}  // namespace sojourn::detail::pages
