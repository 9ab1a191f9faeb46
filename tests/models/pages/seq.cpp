// SPDX-License-Identifier: Apache-2.0
#include "seq.hpp"

namespace page_model {

seq_machine::seq_machine(const program& p, std::optional<rule> broken) : machine(p, broken) {
  for (int g = 0; g < pages; ++g) {
    const int home = home_of(g);
    page_state& page = page_at(home, g);
    page.has_copy = true;
    page.may = access::store;
    page.seq.owner = to_small(home);
    page.seq.copies.insert(home);
  }
}

// --- faults --------------------------------------------------------------------------------------

void seq_machine::fault(int r, int g, bool stores) {
  page_state& page = page_at(r, g);
  const access wanted = stores ? access::store : access::load;
  if (page.may >= wanted) return wake(r, g, page.may == access::store);
  if (page.seq.wanted != access::none && keeps(rule::one_request_per_page)) return;
  page.seq.wanted = wanted;
  message m = make(message_kind::ask, g);
  m.asker = to_small(r);
  m.stores = stores;
  m.has_data = page.may != access::none;
  send_home(r, g, m);
}

/// Opens the page if permission, data and all acknowledgements have come (Q1).
void seq_machine::maybe_open(int r, int g) {
  page_state& page = page_at(r, g);
  seq_page& seq = page.seq;
  if (!seq.has_data || !seq.is_allowed) return;
  const bool others_are_gone = seq.acknowledgements == seq.acknowledgements_wanted;
  if (!others_are_gone && keeps(rule::count_acknowledgements)) return;
  const bool stores = seq.wanted == access::store;
  page.may = stores ? access::store : access::load;
  page.has_copy = true;
  seq.wanted = access::none;
  seq.has_data = seq.is_allowed = false;
  seq.acknowledgements = to_small(seq.acknowledgements - seq.acknowledgements_wanted);
  seq.acknowledgements_wanted = 0;
  seq.unconfirmed = true;
  wake(r, g, stores);
  if (!keeps(rule::use_before_leaving)) confirm(r, g);
  if (!stores && anyone_waits_to_store(r, g)) fault(r, g, true);
}

/// Confirms the request, unless a thread still holds the page, and receives what had to wait for
/// the end of the hold (Q2, Q3).
void seq_machine::used(int r, int g) {
  seq_page& seq = page_at(r, g).seq;
  if (!seq.held_by.is_empty()) return;
  if (seq.unconfirmed) confirm(r, g);
  if (!seq.has_postponed) return;
  const message m = seq.postponed;
  const int from = seq.postponed_from;
  seq.has_postponed = false;
  seq.postponed = {};
  seq.postponed_from = 0;
  receive_protocol_message(r, from, m);
}

void seq_machine::confirm(int r, int g) {
  page_at(r, g).seq.unconfirmed = false;
  send_home(r, g, make(message_kind::confirm, g));
}

void seq_machine::hold(int r, int g, int t) {
  if (!keeps(rule::hold_in_order)) return used(r, g);
  page_at(r, g).seq.held_by.insert(t);
}

void seq_machine::end_hold(int r, int g, int t) {
  small_set& held_by = page_at(r, g).seq.held_by;
  if (keeps(rule::hold_by_thread)) {
    held_by.erase(t);
  } else {
    held_by = {};
  }
}

// --- home ----------------------------------------------------------------------------------------

void seq_machine::serve_next(int home, int g) {
  seq_page& seq = page_at(home, g).seq;
  if (seq.busy || seq.waiting.is_empty()) return;
  const home_request next = seq.waiting.pop();
  seq.busy = true;
  bool has_data = seq.copies.contains(next.asker);
  if (!keeps(rule::decide_data_at_home)) has_data = next.has_data;
  if (next.stores) return serve_store(home, g, next.asker, has_data);
  check(!has_data || !keeps(rule::decide_data_at_home), "a reader has a copy already");
  serve_load(home, g, next.asker);
}

void seq_machine::serve_load(int home, int g, int asker) {
  seq_page& seq = page_at(home, g).seq;
  seq.copies.insert(asker);
  send(home, asker, make(message_kind::allow, g));
  message forward = make(message_kind::forward_read, g);
  forward.asker = to_small(asker);
  send(home, seq.owner, forward);
}

void seq_machine::serve_store(int home, int g, int asker, bool has_data) {
  seq_page& seq = page_at(home, g).seq;
  const int owner = seq.owner;
  const small_set copies = seq.copies;
  seq.owner = to_small(asker);
  seq.copies = {};
  seq.copies.insert(asker);
  // An owner that sends its data gives up its copy as it does so, and need not acknowledge.
  auto must_acknowledge = [&](int q) {
    return q != asker && copies.contains(q) && (has_data || q != owner);
  };
  message allow = make(message_kind::allow, g);
  allow.has_data = has_data;
  for (int q = 0; q < p_.ranks; ++q) allow.count = to_small(allow.count + must_acknowledge(q));
  send(home, asker, allow);
  message invalidate = make(message_kind::invalidate, g);
  invalidate.asker = to_small(asker);
  for (int q = 0; q < p_.ranks; ++q) {
    if (must_acknowledge(q)) send(home, q, invalidate);
  }
  if (has_data) return;
  message forward = make(message_kind::forward_write, g);
  forward.asker = to_small(asker);
  send(home, owner, forward);
}

// --- messages ------------------------------------------------------------------------------------

void seq_machine::take_away(int r, int g) {
  page_state& page = page_at(r, g);
  page.may = access::none;
  page.has_copy = false;
  page.data = {};
}

message seq_machine::data_of(int r, int g) const {
  message m = make(message_kind::data, g);
  m.data = page_at(r, g).data;
  return m;
}

void seq_machine::receive_protocol_message(int r, int from, const message& m) {
  const int g = m.about;
  page_state& page = page_at(r, g);
  seq_page& seq = page.seq;
  const bool is_forward =
      m.what == message_kind::forward_read || m.what == message_kind::forward_write;
  if (is_forward || m.what == message_kind::invalidate) {
    if (!seq.held_by.is_empty()) {
      check(!seq.has_postponed, "two messages wait for the end of one hold");
      seq.has_postponed = true;
      seq.postponed = m;
      seq.postponed_from = to_small(from);
      return;
    }
    check(!is_forward || page.has_copy, "a request is forwarded to a rank without the page");
  }
  switch (m.what) {
    case message_kind::ask:
      check(!seq.waiting.is_full(), "a rank has asked for a page twice");
      seq.waiting.push({m.asker, m.stores, m.has_data});
      return serve_next(r, g);
    case message_kind::allow:
      seq.is_allowed = true;
      seq.acknowledgements_wanted = m.count;
      if (m.has_data) seq.has_data = true;
      return maybe_open(r, g);
    case message_kind::forward_read:
      page.may = access::load;
      return send(r, m.asker, data_of(r, g));
    case message_kind::forward_write: {
      const message data = data_of(r, g);
      take_away(r, g);
      return send(r, m.asker, data);
    }
    case message_kind::invalidate:
      take_away(r, g);
      return send(r, m.asker, make(message_kind::acknowledge, g));
    case message_kind::acknowledge:
      ++seq.acknowledgements;
      return maybe_open(r, g);
    case message_kind::data:
      seq.has_data = true;
      page.data = m.data;
      return maybe_open(r, g);
    case message_kind::confirm:
      seq.busy = false;
      return serve_next(r, g);
    default:
      fail("a message of another protocol");
  }
}

}  // namespace page_model
