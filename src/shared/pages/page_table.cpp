// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/page_table.hpp"

#include <algorithm>

#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

void page_table::set_may(page_state& page, access to) {
  page.may = holds(rule::pinned_stays) ? std::max(to, page.pinned) : to;
  is_urgent_ = is_urgent_ || page.may < page.shown;
  if (page.changes || page.may == page.shown) return;
  page.changes = true;
  changes_.push_back(number_of(page));
}

void page_table::wake(page_state& page) {
  if (page.may == access::none || page.wanted == 0) return;
  const std::uint8_t met = page.may == access::store ? page_state::for_load | page_state::for_store
                                                     : page_state::for_load;
  if ((page.wanted & met) == 0) return;
  // Protection may be stricter than the state; then the page is opened again.
  const bool stores = (page.wanted & met & page_state::for_store) != 0;
  if (!page.changes && page.shown >= (stores ? access::store : access::load))
    host_.protect({number_of(page), 1}, access::none, page.shown);
  is_urgent_ = is_urgent_ || page.changes;
  host_.wake_page(number_of(page), page.may);
  page.wanted = static_cast<std::uint8_t>(page.wanted & ~met);
}

void page_table::show(bool more_comes) {
  if (changes_.empty() || (more_comes && !is_urgent_)) return;
  is_urgent_ = false;
  std::sort(changes_.begin(), changes_.end());
  // Neighbours that change in the same way change together.
  for (std::size_t i = 0; i < changes_.size();) {
    const page_number first = changes_[i];
    const access from = entries_[first].common.shown;
    const access to = entries_[first].common.may;
    std::uint32_t count = 0;
    do {
      page_state& page = entries_[changes_[i]].common;
      page.shown = page.may;
      page.changes = false;
      ++count;
      ++i;
    } while (i < changes_.size() && changes_[i] == first + count &&
             entries_[changes_[i]].common.shown == from && entries_[changes_[i]].common.may == to);
    if (from != to) host_.protect({first, count}, from, to);
  }
  changes_.clear();
}

}  // namespace sojourn::detail::pages
