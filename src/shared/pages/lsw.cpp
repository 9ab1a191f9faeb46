// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/lsw.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

namespace {

/// A message with a greater one comes from no rank: counting ends here.
constexpr std::uint32_t versions_max = 4'000'000'000;

}  // namespace

struct waiting_readers {
  explicit waiting_readers(std::pmr::memory_resource* memory) : ranks(memory) {}
  std::pmr::vector<std::uint16_t> ranks;
};

lsw::lsw(exchange& x, page_table& table)
    : x_(x), table_(table), open_(x.host.memory()), stays_(x.host.memory()) {}
lsw::~lsw() = default;

lsw_page& lsw::page(page_number g) {
  lsw_page& a = table_[g].lsw;
  if (a.known) [[likely]]
    return a;
  a.known = true;
  if (x_.host.home(g) == x_.me) {
    a.copy = a.owns = a.used = true;
    a.last = static_cast<std::uint16_t>(x_.me);
  }
  return a;
}

lsw_page& lsw::checked_page(const page_message_reader& from, page_number g) {
  return page(table_.checked(from, g, protocol_kind::lsw));
}

// --- faults

void lsw::fault(page_number g, bool store, bool /*again*/) {
  lsw_page& a = page(g);
  a.wanted |= store ? page_state::for_store : page_state::for_load;
  const std::uint8_t asked = a.asked;
  if (asked != 0 && holds(rule::one_fetch_a_page)) {
    ++x_.counts->faults_joined;
    return;
  }
  provide(a);
  ++(a.asked != asked ? x_.counts->faults_remote : x_.counts->faults_local);
}

/// Lets the fibers that wait for the page have what they want, or asks for it.
void lsw::provide(lsw_page& a) {
  const page_number g = table_.number_of(a);
  const bool store = (a.wanted & page_state::for_store) != 0;
  if (a.owns) {
    if (store) {
      table_.set_may(a, access::store);
      if (!a.open) open_.push_back(g);
      a.open = true;
    } else if (a.may == access::none) {
      table_.set_may(a, access::load);
    }
    return table_.wake(a);
  }
  if (a.copy && a.version >= a.needed && (a.wanted & page_state::for_load) != 0) {
    table_.set_may(a, access::load);
    table_.wake(a);
  }
  if (a.wanted == 0) return;
  x_.count_overlap();
  ++a.asked;
  ++x_.faults_under_way;
  x_.begin({.what = store ? page_message::own_request : page_message::read_request, .number = g});
  x_.send(x_.host.home(g));
}

void lsw::used(page_number g) {
  lsw_page& a = page(g);
  a.used = true;
  give(a);
}

void lsw::let_go(page_number g) {
  lsw_page& a = page(g);
  SOJOURN_CHECK(a.held != 0, "page %u is let go, and nobody holds it", g);
  a.held = holds(rule::hold_a_thread) ? static_cast<std::uint16_t>(a.held - 1) : std::uint16_t{0};
}

// --- intervals

void lsw::note_version(lsw_page& a, std::uint32_t version) {
  a.needed = std::max(a.needed, version);
  if (!a.owns && a.version < a.needed) table_.set_may(a, access::none);
}

std::uint32_t lsw::next_version(lsw_page& a) {
  if (a.version == versions_max) [[unlikely]]
    die("page %u of shared memory under lsw has had %u versions, which are all that a job can "
        "count: save what it has computed, and go on in another job",
        table_.number_of(a), a.version);
  return ++a.version;
}

void lsw::list_stores(interval_pages& out) {
  std::sort(open_.begin(), open_.end());
  for (page_number g : open_) {
    lsw_page& a = table_[g].lsw;
    a.open = false;
    std::uint32_t version = a.left_with;
    a.left_with = 0;
    if (a.owns && a.may == access::store) {
      version = next_version(a);
      if (a.pinned == access::store && holds(rule::pinned_stays_dirty)) {
        a.open = true;
        stays_.push_back(g);
      } else if (holds(rule::protect_at_close)) {
        table_.set_may(a, access::load);
      }
    }
    if (!a.owns && !holds(rule::notice_lost_pages)) continue;
    note_version(a, version);
    out.versions.push_back({g, version});
  }
  open_.clear();
  open_.swap(stays_);
}

void lsw::learn(const interval_record& r) {
  for (const page_version& v : r.versions(x_.ranks)) {
    if (v.page >= table_.size() || x_.host.protocol_of(v.page) != protocol_kind::lsw)
      x_.host.refuse(r.owner, "lists a version of a page that has none");
    if (v.version > versions_max)
      x_.host.refuse(r.owner, "lists a page with more versions than there are");
    note_version(page(v.page), v.version);
    ++x_.counts->notices;
  }
}

// --- messages

/// Gives the page to those who wait for it, once it is here and has been used.
void lsw::give(lsw_page& a) {
  if (!a.owns || a.held != 0) return;
  if (!a.used && holds(rule::use_before_leaving)) return;
  if (waiting_readers* readers = std::exchange(a.readers, nullptr)) {
    // What is stored after the last closed version belongs to a later one.
    const std::uint32_t version = a.version + (a.open && !holds(rule::stamp_closed) ? 1 : 0);
    for (std::uint16_t to : readers->ranks) send_page(a, page_message::read_reply, version, to);
    std::pmr::polymorphic_allocator<>(x_.host.memory()).delete_object(readers);
  }
  if (!a.has_next || (a.pinned != access::none && holds(rule::pinned_stays))) return;
  a.has_next = false;
  if (a.open && a.may == access::store && a.used) {
    if (holds(rule::count_at_transfer)) (void)next_version(a);
    a.left_with = a.version;
  }
  a.owns = a.used = false;
  if (a.may == access::store) table_.set_may(a, access::load);
  send_page(a, page_message::own_grant, a.version, a.next);
}

void lsw::wait_for_copy(lsw_page& a, std::uint16_t reader) {
  std::pmr::polymorphic_allocator<> memory(x_.host.memory());
  if (a.readers == nullptr) a.readers = memory.new_object<waiting_readers>(x_.host.memory());
  a.readers->ranks.push_back(reader);
}

void lsw::send_page(lsw_page& a, page_message what, std::uint32_t version, int to) {
  const page_number g = table_.number_of(a);
  x_.begin({.what = what, .number = g, .first = version});
  x_.send(to, {x_.host.bytes(g), page_bytes});
}

void lsw::take_bytes(page_message_reader& from, const message_head& head, lsw_page& a) {
  from.require(head.first <= versions_max, "sends a page with more versions than there are");
  a.copy = true;
  a.version = head.first;
  std::memcpy(x_.host.bytes(head.number), from.take_bytes(page_bytes).data(), page_bytes);
  ++x_.counts->pages_fetched;
}

void lsw::receive(page_message_reader& from, const message_head& head) {
  const page_number g = head.number;
  lsw_page& a = checked_page(from, g);
  const auto asker = static_cast<std::uint16_t>(from.from());
  switch (head.what) {
    case page_message::own_request: {
      from.require(x_.host.home(g) == x_.me, "asks for a page whose home is another rank");
      const int last = std::exchange(a.last, asker);
      x_.begin({.what = page_message::own_forward, .rank = asker, .number = g});
      return x_.send(last);
    }
    case page_message::read_request:
      from.require(x_.host.home(g) == x_.me, "asks for a page whose home is another rank");
      x_.begin({.what = page_message::read_forward, .rank = asker, .number = g});
      return x_.send(a.last);
    case page_message::own_forward:
      from.require(!a.has_next && head.rank != x_.me, "forwards a second request for a page");
      a.has_next = true;
      a.next = head.rank;
      return give(a);
    case page_message::read_forward:
      from.require(head.rank != x_.me, "forwards a rank's request to itself");
      wait_for_copy(a, head.rank);
      return give(a);
    case page_message::own_grant:
      from.require(a.asked != 0 && !a.owns, "gives a page that nobody asked for");
      take_bytes(from, head, a);
      a.owns = true;
      a.used = false;
      x_.faults_under_way -= a.asked;
      a.asked = 0;
      return provide(a);
    case page_message::read_reply:
      from.require(a.asked != 0 && !a.owns, "sends a copy that nobody asked for");
      --a.asked;
      --x_.faults_under_way;
      take_bytes(from, head, a);
      if (!holds(rule::check_version_on_arrival)) a.needed = std::min(a.needed, a.version);
      return provide(a);
    default:
      from.refuse("is of another protocol");
  }
}

}  // namespace sojourn::detail::pages
