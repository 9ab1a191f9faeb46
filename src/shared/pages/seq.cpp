// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/seq.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory_resource>
#include <vector>

#include "base/check.hpp"
#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

namespace {

// Flags of a request.
constexpr std::uint8_t to_store = 1;
constexpr std::uint8_t has_copy = 2;

struct request {
  std::uint16_t from;
  std::uint8_t flags;
};

}  // namespace

struct seq_home {
  seq_home(int me, int ranks, std::pmr::memory_resource* memory)
      : owner(static_cast<std::uint16_t>(me)),
        copies(static_cast<std::size_t>(ranks), false, memory),
        waiting(memory) {
    copies[owner] = true;
  }
  std::uint16_t owner;
  bool busy = false;              ///< Until the rank `served` confirms.
  std::uint16_t served = 0;       ///< The rank that was allowed something last.
  std::pmr::vector<bool> copies;  ///< By rank: whether it has a copy.
  std::pmr::deque<request> waiting;
};

seq_page& seq::entry_of(page_number number) {
  seq_page& page = table_[number].seq;
  if (page.known) [[likely]]
    return page;
  page.known = true;
  if (x_.layout.home(number) == x_.me) table_.set_may(page, access::store);
  return page;
}

seq_home& seq::home_of(seq_page& page) {
  if (page.home == nullptr) {
    std::pmr::polymorphic_allocator<> memory(x_.host.memory());
    page.home = memory.new_object<seq_home>(x_.me, x_.ranks, x_.host.memory());
  }
  return *page.home;
}

/// Begins a message about a page, and perhaps a rank.
void seq::begin_about(page_message what, const seq_page& page, int rank) {
  x_.begin(
      {.what = what, .rank = static_cast<std::uint16_t>(rank), .number = table_.number_of(page)});
}

// --- faults

void seq::fault(page_number number, bool store, bool again) {
  seq_page& page = entry_of(number);
  page.wanted |= store ? page_state::for_store : page_state::for_load;
  // The access that came is not enough for the fiber, so the home must not wait until the fiber has
  // used it.
  if (again && page.may < (store ? access::store : access::load)) used(number);
  const bool asked = page.asked != access::none;
  provide(page);
  if (page.asked == access::none)
    ++x_.counts->faults_local;
  else
    ++(asked ? x_.counts->faults_joined : x_.counts->faults_remote);
}

/// Wakes the fibers that wait for an access that is allowed, and asks the home for one that is not.
void seq::provide(seq_page& page) {
  table_.wake(page);
  if (page.wanted == 0 || (page.asked != access::none && holds(rule::one_fetch_a_page))) return;
  const bool store = (page.wanted & page_state::for_store) != 0;
  page.asked = store ? access::store : access::load;
  x_.count_overlap();
  ++x_.faults_under_way;
  const auto flags =
      static_cast<std::uint8_t>((store ? to_store : 0) | (page.may != access::none ? has_copy : 0));
  x_.begin({.what = page_message::ask, .flag = flags, .number = table_.number_of(page)});
  x_.send(x_.layout.home(table_.number_of(page)));
}

/// To be called when an answer, data or an acknowledgement has come. Allows the access if that was
/// the last.
void seq::arrived(seq_page& page) {
  if (!page.allowed || !page.has_data) return;
  if (page.acknowledged != page.acknowledgements && holds(rule::count_acknowledgements)) return;
  table_.set_may(page, page.asked);
  page.asked = access::none;
  --x_.faults_under_way;
  page.allowed = page.has_data = false;
  page.acknowledged = static_cast<std::uint16_t>(page.acknowledged - page.acknowledgements);
  page.acknowledgements = 0;
  page.confirms = true;
  table_.wake(page);
  if (!holds(rule::use_before_leaving)) confirm(page);
  provide(page);
}

void seq::confirm(seq_page& page) {
  page.confirms = false;
  begin_about(page_message::confirm, page);
  x_.send(x_.layout.home(table_.number_of(page)));
}

void seq::used(page_number number) {
  seq_page& page = entry_of(number);
  if (page.held != 0) return;
  if (page.confirms) confirm(page);
  give_late(page);
}

void seq::let_go(page_number number) {
  seq_page& page = entry_of(number);
  SOJOURN_CHECK(page.held != 0, "page %u is let go, and nobody holds it", number);
  page.held =
      holds(rule::hold_a_thread) ? static_cast<std::uint16_t>(page.held - 1) : std::uint16_t{0};
}

// --- at the page's home

void seq::serve_next(seq_page& page) {
  seq_home& h = home_of(page);
  if (h.busy || h.waiting.empty()) return;
  const request r = h.waiting.front();
  h.waiting.pop_front();
  h.busy = true;
  h.served = r.from;
  const bool store = (r.flags & to_store) != 0;
  const bool has =
      holds(rule::data_by_copyset_at_home) ? h.copies[r.from] : (r.flags & has_copy) != 0;
  const int owner = h.owner;
  // The owner's copy need not be invalidated: it leaves with the data.
  std::pmr::vector<std::uint16_t> others(x_.host.memory());
  if (store) {
    for (std::uint16_t q = 0; q < h.copies.size(); ++q)
      if (q != r.from && h.copies[q] && (has || q != owner)) others.push_back(q);
    h.copies.assign(h.copies.size(), false);
    h.owner = r.from;
  }
  h.copies[r.from] = true;
  x_.begin({.what = page_message::allow,
            .flag = store && has,
            .number = table_.number_of(page),
            .first = static_cast<std::uint32_t>(others.size())});
  x_.send(r.from);
  for (std::uint16_t q : others) {
    begin_about(page_message::invalidate, page, r.from);
    x_.send(q);
  }
  if (store && has) return;
  begin_about(store ? page_message::forward_store : page_message::forward_load, page, r.from);
  x_.send(owner);
}

// --- messages

/// Whether the home's message must wait, because an instruction holds the page, or a pin needs it.
bool seq::stays(const seq_page& page, page_message what) {
  if (page.held != 0) return true;
  if (!holds(rule::pinned_stays)) return false;
  return page.pinned == access::store ||
         (page.pinned == access::load && what != page_message::forward_load);
}

void seq::give_late(seq_page& page) {
  if (!page.postponed || stays(page, page.late)) return;
  page.postponed = false;
  give(page.late, page, page.late_for);
}

/// Does what the home's message asks of this rank, which has the page.
void seq::give(page_message what, seq_page& page, int to) {
  const page_number number = table_.number_of(page);
  table_.set_may(page, what == page_message::forward_load ? access::load : access::none);
  if (what == page_message::invalidate) {
    begin_about(page_message::acknowledge, page);
    return x_.send(to);
  }
  begin_about(page_message::data, page);
  x_.send(to, {x_.host.bytes(number), page_bytes});
}

void seq::receive(page_message_reader& from, const message_head& head) {
  const page_number number = table_.checked(from, head.number, protocol_kind::seq);
  seq_page& page = entry_of(number);
  const bool at_home = head.what == page_message::ask || head.what == page_message::confirm;
  from.require(!at_home || x_.layout.home(number) == x_.me, "is for the home of another page");
  switch (head.what) {
    case page_message::ask: {
      auto& waiting = home_of(page).waiting;
      // A rank may ask for more before it confirms what it was allowed, but has one request waiting
      // at most.
      from.require(std::none_of(waiting.begin(), waiting.end(),
                                [&](const request& r) { return r.from == from.from(); }),
                   "asks for a page twice");
      waiting.push_back({static_cast<std::uint16_t>(from.from()), head.flag});
      return serve_next(page);
    }
    case page_message::confirm:
      from.require(home_of(page).busy && home_of(page).served == from.from(),
                   "confirms a page that it did not ask for");
      home_of(page).busy = false;
      return serve_next(page);
    case page_message::allow:
      from.require(
          page.asked != access::none && !page.allowed && from.from() == x_.layout.home(number),
          "allows what nobody asked for");
      from.require(head.first < static_cast<std::uint32_t>(x_.ranks),
                   "names more copies of a page than there are ranks");
      page.allowed = true;
      page.acknowledgements = static_cast<std::uint16_t>(head.first);
      if (head.flag != 0) page.has_data = true;
      return arrived(page);
    case page_message::data:
      from.require(page.asked != access::none && !page.has_data,
                   "sends a page that nobody asked for");
      page.has_data = true;
      std::memcpy(x_.host.bytes(number), from.take_bytes(page_bytes).data(), page_bytes);
      ++x_.counts->pages_fetched;
      return arrived(page);
    case page_message::acknowledge:
      from.require(page.asked == access::store && page.acknowledged + 1 < x_.ranks,
                   "gives up a copy of a page that nobody wants to store to");
      ++page.acknowledged;
      return arrived(page);
    case page_message::forward_load:
    case page_message::forward_store:
    case page_message::invalidate:
      from.require(page.may != access::none && !page.postponed, "is for a rank without the page");
      from.require(
          from.from() == x_.layout.home(number) && head.rank < x_.ranks && head.rank != x_.me,
          "hands a page on that is not its own");
      if (!stays(page, head.what)) return give(head.what, page, head.rank);
      page.postponed = true;
      page.late = head.what;
      page.late_for = head.rank;
      return;
    default:
      from.refuse("is of another protocol");
  }
}

}  // namespace sojourn::detail::pages
