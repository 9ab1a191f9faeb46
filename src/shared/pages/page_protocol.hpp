// SPDX-License-Identifier: Apache-2.0
// What a protocol of the shared region does: the contract that lmw, lsw and seq keep. A rank has
// one of each, and asks the one that the page's allocation has chosen. Nothing here suspends, calls
// the program, or changes protection before page_table::show(). What intervals and barriers need of
// lmw and lsw alone, these declare themselves.
#pragma once

#include "shared/pages/page.hpp"
#include "shared/pages/page_message.hpp"

namespace sojourn::detail::pages {

class page_protocol {
 public:
  page_protocol() = default;
  page_protocol(const page_protocol&) = delete;
  page_protocol& operator=(const page_protocol&) = delete;
  virtual ~page_protocol() = default;

  // --- Faults

  /// A fiber needs the page. It is woken (page_table::wake), now or later, and executes its
  /// instruction again. `again`: its last fault was on this page, too, at the same instruction,
  /// which has not run since: what came did not suffice, or has left.
  virtual void fault(page_number number, bool store, bool again) = 0;

  /// The rank that is asked first for a page which is not here.
  virtual int keeper(page_number number) = 0;

  /// Whether, as far as its home knows, nobody has touched the page: it is zero.
  virtual bool is_untouched(page_number number) const = 0;
  /// At its home, before anybody touches it: it has come from a checkpoint, and is not zero.
  virtual void restored(page_number number) = 0;

  /// Whether a page stays, once it has come, until used() is called. If not, the next three
  /// functions are never called.
  virtual bool stays_until_used() const { return false; }
  /// An instruction that waited for the page has run, or waits for another page.
  virtual void used(page_number) {}
  /// The page does not leave until let_go() has been called as often: an instruction has it, and
  /// waits for a page with a greater number.
  virtual void hold(page_number) {}
  /// used() is called next where the instruction has no more need of the page.
  virtual void let_go(page_number) {}

  // --- Pins

  /// Whether the page is here in such a way that it can be pinned. If not, a fault that wants
  /// to_pin(how) brings it.
  virtual bool can_be_pinned(page_number number, access how) = 0;
  virtual access to_pin(access how) const { return how; }
  /// page_state::pinned has changed. A page that is pinned allows that as long as it is, whatever
  /// comes: lazily consistent copies are brought up to date here, pages with a single writer do not
  /// leave. Somebody else, the system for one, may use the page at any time.
  virtual void pinned(page_number) {}

  // --- Messages

  virtual void receive(page_message_reader& from, const message_head& head) = 0;
};

}  // namespace sojourn::detail::pages
