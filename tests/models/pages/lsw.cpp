// SPDX-License-Identifier: Apache-2.0
#include "lsw.hpp"

#include <algorithm>

namespace page_model {

lsw_machine::lsw_machine(const program& p, std::optional<rule> broken) : machine(p, broken) {
  for (int g = 0; g < pages; ++g) {
    page_state& page = page_at(home_of(g), g);
    page.has_copy = page.lsw.owns = page.lsw.used = true;
    page.may = access::load;
    page.lsw.last_asker = to_small(home_of(g));
  }
}

// --- intervals -----------------------------------------------------------------------------------

/// Counts up the versions of pages that were stored to, and takes note of them (S1, S2).
void lsw_machine::close_interval(int r) {
  rank_state& rank = s.rank[r];
  for (int g = 0; g < pages; ++g) {
    page_state& page = rank.page[g];
    lsw_page& lsw = page.lsw;
    if (!lsw.dirty) continue;
    lsw.dirty = false;
    small version = lsw.lost_version;
    if (lsw.owns && page.may == access::store) {
      version = ++lsw.version;
      if (keeps(rule::protect_at_close)) page.may = access::load;
    }
    lsw.lost_version = 0;
    if (!lsw.owns && !keeps(rule::notice_lost_pages)) continue;
    rank.versions[g] = std::max(rank.versions[g], version);
    lsw.needed = std::max(lsw.needed, version);
    if (!lsw.owns && lsw.version < version) page.may = access::none;
  }
}

/// Makes copies absent that are older than the notices of the message (S4).
void lsw_machine::take_in(int r, const message& m) {
  // As under `lmw`, but no program was found that fails when this is left out here.
  close_interval(r);
  rank_state& rank = s.rank[r];
  for (int g = 0; g < pages; ++g) {
    page_state& page = rank.page[g];
    rank.versions[g] = std::max(rank.versions[g], m.versions[g]);
    page.lsw.needed = std::max(page.lsw.needed, m.versions[g]);
    if (!page.lsw.owns && page.lsw.version < page.lsw.needed) page.may = access::none;
  }
}

// --- faults --------------------------------------------------------------------------------------

void lsw_machine::fault(int r, int g, bool stores) {
  page_state& page = page_at(r, g);
  lsw_page& lsw = page.lsw;
  if (lsw.asked != 0 && keeps(rule::one_request_per_page)) return;
  if (lsw.owns) {
    if (stores) {
      page.may = access::store;
      lsw.dirty = true;
    } else {
      page.may = std::max(page.may, access::load);
    }
    return wake(r, g, true);
  }
  if (!stores && page.has_copy && lsw.version >= lsw.needed) return open_to_waiting_loads(r, g);
  ++lsw.asked;
  message m = make(stores ? message_kind::token_request : message_kind::read_request, g);
  m.asker = to_small(r);
  send_home(r, g, m);
}

/// Opens the copy to the threads that wait to load. If others wait to store, asks for the token.
void lsw_machine::open_to_waiting_loads(int r, int g) {
  page_at(r, g).may = access::load;
  wake(r, g, false);
  if (anyone_waits_to_store(r, g)) fault(r, g, true);
}

// --- serving -------------------------------------------------------------------------------------

void lsw_machine::used(int r, int g) {
  page_at(r, g).lsw.used = true;
  serve(r, g);
}

/// Serves the ranks that wait for the page, if it is here and was used (S5, S6).
void lsw_machine::serve(int r, int g) {
  lsw_page& lsw = page_at(r, g).lsw;
  if (!lsw.owns) return;
  if (!lsw.used && keeps(rule::use_before_leaving)) return;
  for (int q = 0; q < p_.ranks; ++q) {
    if (!lsw.readers.contains(q)) continue;
    lsw.readers.erase(q);
    send_copy(r, q, g);
  }
  if (lsw.next_owner.has_value()) send_token(r, g);
}

/// Sends a copy to a rank that wants to load, with the last closed version (S3).
void lsw_machine::send_copy(int r, int reader, int g) {
  const page_state& page = page_at(r, g);
  message m = make(message_kind::read_reply, g);
  m.version = page.lsw.version;
  if (page.lsw.dirty && !keeps(rule::stamp_closed_version)) ++m.version;
  m.data = page.data;
  send(r, reader, m);
}

/// Sends the page to its next owner; if it is dirty, its version counts up (S2).
void lsw_machine::send_token(int r, int g) {
  page_state& page = page_at(r, g);
  lsw_page& lsw = page.lsw;
  const int to = lsw.next_owner.value();
  lsw.next_owner.clear();
  if (lsw.dirty && lsw.used && page.may == access::store) {
    if (keeps(rule::count_at_transfer)) ++lsw.version;
    lsw.lost_version = lsw.version;
  }
  message m = make(message_kind::token_grant, g);
  m.version = lsw.version;
  m.data = page.data;
  lsw.owns = lsw.used = false;
  page.may = std::min(page.may, access::load);
  note("rank ", r, " gives page ", g, " to rank ", to);
  send(r, to, m);
}

void lsw_machine::receive_protocol_message(int r, int, const message& m) {
  const int g = m.about;
  lsw_page& lsw = page_at(r, g).lsw;
  message forward = m;
  switch (m.what) {
    case message_kind::token_request: {
      const int last = lsw.last_asker;
      lsw.last_asker = m.asker;
      forward.what = message_kind::token_forward;
      return send(r, last, forward);
    }
    case message_kind::read_request:
      forward.what = message_kind::read_forward;
      return send(r, lsw.last_asker, forward);
    case message_kind::token_forward:
      if (m.asker == r) {
        // An earlier request of its own has made it the owner.
        check(lsw.owns, "an owner's own request found no page");
        lsw.asked = 0;
        return fault(r, g, true);
      }
      check(!lsw.next_owner.has_value(), "two ranks wait for one rank's page");
      lsw.next_owner.set(m.asker);
      return serve(r, g);
    case message_kind::read_forward:
      lsw.readers.insert(m.asker);
      return serve(r, g);
    case message_kind::token_grant:
      return receive_token(r, m);
    case message_kind::read_reply:
      return receive_copy(r, m);
    default:
      fail("a message of another protocol");
  }
}

void lsw_machine::receive_token(int r, const message& m) {
  const int g = m.about;
  page_state& page = page_at(r, g);
  page.has_copy = page.lsw.owns = page.lsw.dirty = true;
  page.lsw.used = false;
  page.lsw.asked = 0;
  page.lsw.version = m.version;
  page.data = m.data;
  page.may = access::store;
  wake(r, g, true);
}

/// Opens the copy, or asks again if it is older than a known notice (S4).
void lsw_machine::receive_copy(int r, const message& m) {
  const int g = m.about;
  page_state& page = page_at(r, g);
  lsw_page& lsw = page.lsw;
  check(!lsw.owns || !keeps(rule::one_request_per_page), "a copy comes to the owner");
  if (lsw.asked != 0) --lsw.asked;
  page.has_copy = true;
  lsw.version = m.version;
  page.data = m.data;
  if (lsw.version < lsw.needed && keeps(rule::check_version_on_arrival)) {
    page.may = access::none;
    return fault(r, g, anyone_waits_to_store(r, g));
  }
  open_to_waiting_loads(r, g);
}

}  // namespace page_model
