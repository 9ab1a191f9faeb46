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
      each_page(r, x_.ranks, [&](page_number number, bool has_readers) {
        visit(entry_of(number), r, has_readers);
      });
    }
}

/// A page that one rank alone has listed since the last barrier becomes exclusive on that rank. All
/// ranks decide the same, because they have the same records.
void lmw::departed() {
  listed_.clear();
  ahead_.clear();
  pulls_due_ = 0;
  exchange_is_over_ = false;
  each_listed(x_.previous_barrier, x_.barrier,
              [&](lmw_page& page, const interval_record& r, bool has_readers) {
                if (page.seen != x_.epoch) {
                  page.seen = x_.epoch;
                  page.several_writers = false;
                  page.has_readers = has_readers;
                  listed_.push_back(number_of(page));
                } else {
                  page.has_readers = page.has_readers || has_readers;
                  if (page.writer != r.owner) {
                    if (x_.report != nullptr && x_.layout.home(number_of(page)) == x_.me)
                      x_.report->several_writers(number_of(page), page.writer, r.owner,
                                                 !page.several_writers);
                    page.several_writers = true;
                  }
                  if (x_.log.find(page.writer, page.written).order >= r.order) return;
                }
                page.writer = r.owner;
                page.written = r.index;
              });
  for (page_number number : listed_) {
    lmw_page& page = table_[number].lmw;
    const bool has_readers = holds(rule::agree_on_readers) ? page.has_readers : page.readers != 0;
    const bool stays_shared = page.several_writers || has_readers;
    if (page.has_copy() && (stays_shared ? page.lost && !is_valid(page) : page.writer != x_.me)) {
      page.follows = !page.on_trial;
      if (page.follows) ahead_.push_back(number);
    } else if (is_own_of_epoch(page) && together_at_most(number) > 1) {
      pulls_due_ += std::min<std::uint32_t>(page.readers, static_cast<std::uint32_t>(x_.ranks) - 1);
    }
    page.readers = 0;
    page.on_trial = page.lost = false;
    if (stays_shared || !settings_.exclusive) continue;
    page.keeper = page.writer;
    const bool fetching = page.is_being_fetched();
    if (page.writer != x_.me) {
      // An exclusive page is shared when a notice of another rank's stores comes (learn). So this
      // one was given away to this rank later, and only a page that nobody has used is given away.
      if (page.is_exclusive()) x_.host.refuse(page.writer, "lists a page that this rank alone has");
      if (fetching && holds(rule::drop_fetches_in_flight)) page.outdated = true;
      if (page.has_copy() && holds(rule::drop_at_exclusive)) drop_copy(page);
      continue;
    }
    if (!page.has_copy()) continue;
    if ((!is_valid(page) || fetching) && holds(rule::exclusive_only_if_valid)) continue;
    unstick(page);
    if (page.twin != nullptr) drop_twin(page);
    page.thrown = x_.log.mine();
    enter(page, lmw_state::exclusive);
    set_may(page, access::store);
  }
}

void lmw::fetch_what_must() {
  for (page_number number : must_) {
    lmw_page& page = table_[number].lmw;
    if (page.has_copy())
      page.must = false;
    else if (!page.is_being_fetched() && !stopped_)
      start_fetch(page, true);
  }
  std::erase_if(must_, [&](page_number number) { return !table_[number].lmw.must; });
}

void lmw::fetch_ahead() {
  for (page_number number : ahead_) {
    if (pulls_under_way_ == pulls_max) break;
    lmw_page& page = table_[number].lmw;
    if (page.is_being_fetched() || is_valid(page) || together_at_most(number) <= 1) continue;
    page.pulled = true;
    ++pulls_under_way_;
    start_fetch(page, false);
    page.on_trial = page.brought++ % brings_for_a_trial == 0;
  }
  // No rank fetches more pages ahead than this, so no more such requests are waited for.
  pulls_due_ = std::min<std::uint32_t>(pulls_due_, pulls_max);
}

/// In a collection a page's keeper is the rank that stored to it last, in the last epoch in which
/// any rank did. All ranks find the same keeper, and it has a copy. (A rank that stored to the page
/// in an earlier epoch may have dropped its copy since, even if its interval has the greater
/// order.)
void lmw::begin_collection() {
  listed_.clear();
  each_listed(x_.log.collected(), x_.barrier, [&](lmw_page& page, const interval_record& r, bool) {
    // Lists each page once.
    if (r.owner == page.writer && r.index == page.written) listed_.push_back(number_of(page));
  });
  for (page_number number : listed_) {
    lmw_page& page = table_[number].lmw;
    page.keeper = page.writer;
    const bool fetching = page.is_being_fetched();
    if (page.keeper == x_.me) {
      if (!is_valid(page) && !fetching) start_fetch(page, false);
    } else if (page.has_copy() && !is_valid(page) && !fetching && holds(rule::drop_at_collection)) {
      drop_copy(page);
    }
  }
}

/// Frees what is known of a page that has neither a copy nor notices here: only its keeper still
/// matters. A program has many pages, and a rank uses few of them.
void lmw::forget_history(lmw_page& page) {
  page_history* const h = page.history;
  if (page.has_copy() || page.is_being_fetched() || h->newest != nullptr) return;
  for (const page_writer* w = h->writers; w != nullptr; w = w->next)
    if (w->newest != nullptr) return;
  while (page_writer* gone = h->writers) {
    h->writers = gone->next;
    deallocate(gone, sizeof *gone, alignof(page_writer));
  }
  page.history = nullptr;
  deallocate(h, history_bytes(), alignof(page_history));
}

bool lmw::fetches_in_progress() const {
  if (holds(rule::wait_for_fetches_before_done)) return fetches_ != 0;
  // For tests that break the rule: counts only fetches of pages that this rank keeps, which are the
  // collection's own.
  for (page_number number = 0; number < table_.size(); ++number) {
    const lmw_page& page = table_[number].lmw;
    if (x_.layout.protocol_of(number) == protocol_kind::lmw && page.keeper == x_.me &&
        page.is_being_fetched())
      return true;
  }
  return false;
}

void lmw::end_collection() {
  stopped_ = false;
  const vector_clock& up_to = x_.barrier;
  const interval mine = up_to[static_cast<std::size_t>(x_.me)];
  each_listed(x_.log.collected(), up_to, [&](lmw_page& page, const interval_record&, bool) {
    if (page.history == nullptr) return;
    page_history& h = *page.history;
    if (page.twin != nullptr && !page.is_open() && page.twin_of <= mine) drop_twin(page);
    page.thrown = std::max(page.thrown, mine);
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
    forget_history(page);
  });
  fetch_what_must();
  std::pmr::vector<page_number> later(deferred_, x_.host.memory());
  deferred_.clear();
  for (page_number number : later) {
    lmw_page& page = table_[number].lmw;
    page.deferred = false;
    if (page.is_being_fetched()) continue;
    if (is_valid(page))
      open(page);
    else
      start_fetch(page, (page.wanted & lmw_page::for_store) != 0);
  }
}

}  // namespace sojourn::detail::pages
