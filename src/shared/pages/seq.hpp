// SPDX-License-Identifier: Apache-2.0
// The protocol `seq`: sequentially consistent pages, for programs with data races. A page's home
// serves one request for it at a time. Either one rank may store to the page, or some may load
// from it: who wants to store waits until all other copies have gone. The next request is served
// after an instruction that waited for the page has run.
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

  void fault(page_number g, bool store, bool again) override;
  int keeper(page_number g) override { return x_.host.home(g); }
  void restored(page_number g) override { (void)page(g); }
  bool is_untouched(page_number g) const override { return !table_[g].seq.known; }
  bool stays_until_used() const override { return true; }
  void used(page_number g) override;
  void hold(page_number g) override { ++page(g).held; }
  void let_go(page_number g) override;
  bool can_be_pinned(page_number g, access how) override { return page(g).may >= how; }
  void pinned(page_number g) override { give_late(page(g)); }

  void receive(page_message_reader& from, const message_head& head) override;

 private:
  seq_page& page(page_number g);
  seq_home& home_of(seq_page& a);
  void provide(seq_page& a);
  void arrived(seq_page& a);
  void confirm(seq_page& a);
  void serve_next(seq_page& a);
  static bool stays(const seq_page& a, page_message what);
  void give(page_message what, seq_page& a, int to);
  void give_late(seq_page& a);
  void begin_about(page_message what, const seq_page& a, int rank = 0);

  exchange& x_;
  page_table& table_;
};

}  // namespace sojourn::detail::pages
