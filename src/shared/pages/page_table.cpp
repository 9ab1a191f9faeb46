// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/page_table.hpp"

#include <algorithm>

#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

void page_table::set_may(page_state& a, access to) {
  a.may = holds(rule::pinned_stays) ? std::max(to, a.pinned) : to;
  is_urgent_ = is_urgent_ || a.may < a.shown;
  if (a.changes || a.may == a.shown) return;
  a.changes = true;
  changes_.push_back(number_of(a));
}

void page_table::wake(page_state& a) {
  if (a.may == access::none || a.wanted == 0) return;
  const std::uint8_t met =
      a.may == access::store ? page_state::for_load | page_state::for_store : page_state::for_load;
  if ((a.wanted & met) == 0) return;
  // Protection may be stricter than the state: then it is opened again.
  const bool stores = (a.wanted & met & page_state::for_store) != 0;
  if (!a.changes && a.shown >= (stores ? access::store : access::load))
    host_.protect({number_of(a), 1}, access::none, a.shown);
  is_urgent_ = is_urgent_ || a.changes;
  host_.wake_page(number_of(a), a.may);
  a.wanted = static_cast<std::uint8_t>(a.wanted & ~met);
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
      page_state& a = entries_[changes_[i]].common;
      a.shown = a.may;
      a.changes = false;
      ++count;
      ++i;
    } while (i < changes_.size() && changes_[i] == first + count &&
             entries_[changes_[i]].common.shown == from && entries_[changes_[i]].common.may == to);
    if (from != to) host_.protect({first, count}, from, to);
  }
  changes_.clear();
}

}  // namespace sojourn::detail::pages
