// SPDX-License-Identifier: Apache-2.0
// The protocol `lsw`: lazy release consistency with a single writer for each page. A rank that
// stores to a page needs the page's token, which comes with the whole page. The page's home knows
// which rank asked for it last, as a lock's manager does. Copies on other ranks stay readable until
// a notice of a later version comes. The version counts up when an interval is closed in which the
// page was stored to, and when the page leaves within such an interval.
// Source: Keleher, "The Relative Importance of Concurrent Writers and Weak Consistency Models"
// (ICDCS 1996).
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "shared/pages/exchange.hpp"
#include "shared/pages/page_protocol.hpp"
#include "shared/pages/page_table.hpp"

namespace sojourn::detail::pages {

class lsw final : public page_protocol {
 public:
  lsw(exchange& x, page_table& table);
  ~lsw() override;

  void fault(page_number number, bool store, bool again) override;
  int keeper(page_number number) override { return x_.layout.home(number); }
  void restored(page_number number) override { (void)entry_of(number); }
  bool is_untouched(page_number number) const override { return !table_[number].lsw.known; }
  bool stays_until_used() const override { return true; }
  void used(page_number number) override;
  void hold(page_number number) override { ++entry_of(number).held; }
  void let_go(page_number number) override;
  /// A page is pinned, even for loads, only on the rank that owns it: no notice of it comes there.
  bool can_be_pinned(page_number number, access how) override {
    return entry_of(number).owns && entry_of(number).may >= how;
  }
  access to_pin(access) const override { return access::store; }
  void pinned(page_number number) override { give(entry_of(number)); }

  void receive(page_message_reader& from, const message_head& head) override;

  /// Whether pages may have been stored to in the open interval.
  bool has_stores() const { return !open_.empty(); }
  /// The open interval is being closed: adds the pages that were stored to in it.
  void list_stores(interval_pages& out);
  /// Takes in an interval of another rank that was not known.
  void learn(const interval_record& r);

 private:
  lsw_page& entry_of(page_number number);
  lsw_page& checked_page(const page_message_reader& from, page_number number);
  std::uint32_t next_version(lsw_page& page);
  void note_version(lsw_page& page, std::uint32_t version);
  void provide(lsw_page& page);
  void give(lsw_page& page);
  void wait_for_copy(lsw_page& page, std::uint16_t reader);
  void send_page(lsw_page& page, page_message what, std::uint32_t version, int to);
  void take_bytes(page_message_reader& from, const message_head& head, lsw_page& page);

  exchange& x_;
  page_table& table_;
  std::pmr::vector<page_number> open_;   ///< Pages stored to in the open interval.
  std::pmr::vector<page_number> stays_;  ///< Scratch: the pages of open_ that stay open.
};

}  // namespace sojourn::detail::pages
