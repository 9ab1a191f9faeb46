// SPDX-License-Identifier: Apache-2.0
// The protocol `seq`: sequentially consistent pages, for programs with data races. A page's home
// serves one request for it at a time. Either one rank may store to the page, or several may load
// from it: a rank that wants to store waits until all other copies have gone. The home serves the
// next request only after the instruction that waited for the page has run.
// Source: Li and Hudak, "Memory Coherence in Shared Virtual Memory Systems" (TOCS 1989).
#pragma once

#include <cstdint>

#include "shared/pages/exchange.hpp"
#include "shared/pages/page_protocol.hpp"
#include "shared/pages/page_table.hpp"

namespace sojourn::detail::pages {

class seq final : public page_protocol {
 public:
  seq(exchange& x, page_table& table) : x_(x), table_(table) {}

  void fault(page_number number, bool store, bool again) override;
  int keeper(page_number number) override { return x_.layout.home(number); }
  void restored(page_number number) override { (void)entry_of(number); }
  bool is_untouched(page_number number) const override { return !table_[number].seq.known; }
  bool stays_until_used() const override { return true; }
  void used(page_number number) override;
  void hold(page_number number) override { ++entry_of(number).held; }
  void let_go(page_number number) override;
  bool can_be_pinned(page_number number, access how) override {
    return entry_of(number).may >= how;
  }
  void pinned(page_number number) override { give_late(entry_of(number)); }

  void receive(page_message_reader& from, const message_head& head) override;

 private:
  seq_page& entry_of(page_number number);
  seq_home& home_of(seq_page& page);
  void provide(seq_page& page);
  void arrived(seq_page& page);
  void confirm(seq_page& page);
  void serve_next(seq_page& page);
  static bool stays(const seq_page& page, page_message what);
  void give(page_message what, seq_page& page, int to);
  void give_late(seq_page& page);
  void begin_about(page_message what, const seq_page& page, int rank = 0);

  exchange& x_;
  page_table& table_;
};

}  // namespace sojourn::detail::pages
