// SPDX-License-Identifier: Apache-2.0
// What a protocol of the shared region does: the contract that lmw, lsw and seq keep. A rank has
// one of each, and asks the one that the page's allocation has chosen. Nothing here suspends, calls
// the program, or changes protection before page_table::show().
#pragma once

#include <cstddef>

#include "shared/pages/interval_log.hpp"
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
  /// A pinned page that lacks what this rank has acquired, or null. Until there is none, no fiber
  /// may run: it would not fault there.
  virtual const page_number* lacking_pinned() const { return nullptr; }

  // --- Intervals

  /// Whether pages may have been stored to in the open interval.
  virtual bool has_stores() const { return false; }
  /// The open interval is being closed: adds the pages that were stored to in it.
  virtual void list_stores(interval_pages&) {}
  /// It has this number. Called after list_stores() when any protocol has listed a page.
  virtual void closed(interval) {}
  /// An interval of another rank that was not known.
  virtual void learn(const interval_record&) {}

  // --- Barriers and collections; see barrier_hooks

  virtual void departed() {}
  /// A barrier was left, and no collection comes: fetches what fibers will want again.
  virtual void fetch_ahead() {}
  /// Nothing of that is under way, and no other rank is expected to ask for any.
  virtual bool is_at_ease() const { return true; }
  /// It has been waited for long enough; until the next barrier, the above is true.
  virtual void end_exchange() {}
  virtual bool must_fetch() const { return false; }
  virtual void fetch_what_must() {}
  virtual void begin_collection() {}
  virtual bool fetches_in_progress() const { return false; }
  virtual void stop_fetching() {}
  virtual void end_collection() {}
  /// Bytes that a collection may give back.
  virtual std::size_t collectable_bytes() const { return 0; }

  // --- Messages

  virtual void receive(page_message_reader& from, const message_head& head) = 0;
  /// Sends what was put off in order to be sent together. Called at the end of whatever was called
  /// above.
  virtual void send_requests() {}
};

}  // namespace sojourn::detail::pages
