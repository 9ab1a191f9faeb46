// SPDX-License-Identifier: Apache-2.0
// The pages of a rank, and what the program may do with them. A protocol says at once what a page
// allows. Protection is changed at the end of a call, for neighbouring pages together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "shared/pages/page.hpp"
#include "shared/pages/page_entry.hpp"
#include "shared/pages/page_layout.hpp"
#include "shared/pages/services.hpp"

namespace sojourn::detail::pages {

class page_table {
 public:
  /// `entries` has a zeroed entry for each page of the region.
  page_table(services& host, const page_layout& layout, std::span<page_entry> entries)
      : host_(host), layout_(layout), entries_(entries), changes_(host.memory()) {}

  page_entry& operator[](page_number number) { return entries_[number]; }
  const page_entry& operator[](page_number number) const { return entries_[number]; }
  std::size_t size() const { return entries_.size(); }
  page_number number_of(const page_state& page) const {
    return static_cast<page_number>(reinterpret_cast<const page_entry*>(&page) - entries_.data());
  }

  /// The number of a page that a message names. Refuses the message if there is no such page, or
  /// the page has another protocol.
  page_number checked(const page_message_reader& from, page_number number,
                      protocol_kind kind) const {
    from.require(number < size(), "names a page that does not exist");
    from.require(layout_.protocol_of(number) == kind, "names a page of another protocol");
    return number;
  }

  /// Sets what the page allows from now on.
  void set_may(page_state& page, access to);
  /// Wakes the fibers that wait for an access that the page allows. `wanted` is then what the
  /// others wait for.
  void wake(page_state& page);
  /// Changes protection to what the pages allow. `more_comes`: other pages are on their way; then
  /// pages that are only to be opened, and for which nobody waits, may be left for the next call,
  /// to be opened together with those.
  void show(bool more_comes);

 private:
  services& host_;
  const page_layout& layout_;
  std::span<page_entry> entries_;
  std::pmr::vector<page_number> changes_;  ///< Pages whose protection changes.
  bool is_urgent_ = false;  ///< One of these pages must be closed, or a fiber waits for it.
};

}  // namespace sojourn::detail::pages
