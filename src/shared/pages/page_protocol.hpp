// SPDX-License-Identifier: Apache-2.0
// What a protocol of the shared region does: the contract that lmw, lsw and seq keep. A rank has
// one of each, and calls the one that was chosen when the page was allocated. Nothing here
// suspends, calls the program, or changes protection before page_table::show(). Functions that
// intervals and barriers need of lmw and lsw alone are declared by these.
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

  /// A fiber needs the page. The fiber is woken (page_table::wake), now or later, and executes its
  /// instruction again. `again`: the fiber's last fault was on this page, at the same instruction,
  /// which has not run since, because what came was not enough, or has left again.
  virtual void fault(page_number number, bool store, bool again) = 0;

  /// The rank that is asked first for a page which is not here.
  virtual int keeper(page_number number) = 0;

  /// To be asked at the page's home. Whether nobody has touched the page, as far as the home knows,
  /// so that it holds zeros.
  virtual bool is_untouched(page_number number) const = 0;
  /// Called at the page's home, before anybody touches the page: it was restored from a checkpoint,
  /// so it does not hold zeros.
  virtual void restored(page_number number) = 0;

  /// Whether a page that has come stays until used() is called. If not, the next three functions
  /// are never called.
  virtual bool stays_until_used() const { return false; }
  /// The instruction that waited for the page has run, or waits for another page.
  virtual void used(page_number) {}
  /// The page must not leave until let_go() has been called as often as hold(): an instruction has
  /// it, and waits for a page with a greater number.
  virtual void hold(page_number) {}
  /// Ends a hold(). If the instruction needs the page no longer, used() is called next.
  virtual void let_go(page_number) {}

  // --- Pins

  /// Whether the page is here and can be pinned as it is. If not, a fault for the access
  /// to_pin(how) brings it.
  virtual bool can_be_pinned(page_number number, access how) = 0;
  virtual access to_pin(access how) const { return how; }
  /// page_state::pinned has changed. As long as a page is pinned, it allows that access, whatever
  /// messages come: the copy of a page with several writers is brought up to date in place, and a
  /// page with a single writer does not leave. Code outside of the runtime, such as the system, may
  /// use the page at any time.
  virtual void pinned(page_number) {}

  // --- Messages

  virtual void receive(page_message_reader& from, const message_head& head) = 0;
};

}  // namespace sojourn::detail::pages
