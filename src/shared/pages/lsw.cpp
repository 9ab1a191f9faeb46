// SPDX-License-Identifier: Apache-2.0
#include "shared/pages/lsw.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "shared/pages/rules.hpp"

namespace sojourn::detail::pages {

namespace {

/// The greatest version. No rank sends a message with a greater one.
constexpr std::uint32_t versions_max = 4'000'000'000;

}  // namespace

struct waiting_readers {
  explicit waiting_readers(std::pmr::memory_resource* memory) : ranks(memory) {}
  std::pmr::vector<std::uint16_t> ranks;
};

lsw::lsw(exchange& x, page_table& table)
    : x_(x), table_(table), open_(x.host.memory()), stays_(x.host.memory()) {}
lsw::~lsw() = default;

lsw_page& lsw::entry_of(page_number number) {
  lsw_page& page = table_[number].lsw;
  if (page.known) [[likely]]
    return page;
  page.known = true;
  if (x_.layout.home(number) == x_.me) {
    page.copy = page.owns = page.used = true;
    page.last = static_cast<std::uint16_t>(x_.me);
  }
  return page;
}

lsw_page& lsw::checked_page(const page_message_reader& from, page_number number) {
  return entry_of(table_.checked(from, number, protocol_kind::lsw));
}

// --- faults

void lsw::fault(page_number number, bool store, bool /*again*/) {
  lsw_page& page = entry_of(number);
  page.wanted |= store ? page_state::for_store : page_state::for_load;
  const std::uint8_t asked = page.asked;
  if (asked != 0 && holds(rule::one_fetch_a_page)) {
    ++x_.counts->faults_joined;
    return;
  }
  provide(page);
  ++(page.asked != asked ? x_.counts->faults_remote : x_.counts->faults_local);
}

/// Lets the fibers that wait for the page have what they want, or asks for it.
void lsw::provide(lsw_page& page) {
  const page_number number = table_.number_of(page);
  const bool store = (page.wanted & page_state::for_store) != 0;
  if (page.owns) {
    if (store) {
      table_.set_may(page, access::store);
      if (!page.open) open_.push_back(number);
      page.open = true;
    } else if (page.may == access::none) {
      table_.set_may(page, access::load);
    }
    return table_.wake(page);
  }
  if (page.copy && page.version >= page.needed && (page.wanted & page_state::for_load) != 0) {
    table_.set_may(page, access::load);
    table_.wake(page);
  }
  if (page.wanted == 0) return;
  x_.count_overlap();
  ++page.asked;
  ++x_.faults_under_way;
  x_.begin(
      {.what = store ? page_message::own_request : page_message::read_request, .number = number});
  x_.send(x_.layout.home(number));
}

void lsw::used(page_number number) {
  lsw_page& page = entry_of(number);
  page.used = true;
  give(page);
}

void lsw::let_go(page_number number) {
  lsw_page& page = entry_of(number);
  SOJOURN_CHECK(page.held != 0, "page %u is let go, and nobody holds it", number);
  page.held =
      holds(rule::hold_a_thread) ? static_cast<std::uint16_t>(page.held - 1) : std::uint16_t{0};
}

// --- intervals

void lsw::note_version(lsw_page& page, std::uint32_t version) {
  page.needed = std::max(page.needed, version);
  if (!page.owns && page.version < page.needed) table_.set_may(page, access::none);
}

std::uint32_t lsw::next_version(lsw_page& page) {
  if (page.version == versions_max) [[unlikely]]
    die("page %u of shared memory under lsw has had %u versions, which are all that a job can "
        "count: save what it has computed, and go on in another job",
        table_.number_of(page), page.version);
  return ++page.version;
}

void lsw::list_stores(interval_pages& out) {
  std::sort(open_.begin(), open_.end());
  for (page_number number : open_) {
    lsw_page& page = table_[number].lsw;
    page.open = false;
    std::uint32_t version = page.left_with;
    page.left_with = 0;
    if (page.owns && page.may == access::store) {
      version = next_version(page);
      if (page.pinned == access::store && holds(rule::pinned_stays_dirty)) {
        page.open = true;
        stays_.push_back(number);
      } else if (holds(rule::protect_at_close)) {
        table_.set_may(page, access::load);
      }
    }
    if (!page.owns && !holds(rule::notice_lost_pages)) continue;
    note_version(page, version);
    out.versions.push_back({number, version});
  }
  open_.clear();
  open_.swap(stays_);
}

void lsw::learn(const interval_record& r) {
  for (const page_version& v : r.versions(x_.ranks)) {
    if (v.page >= table_.size() || x_.layout.protocol_of(v.page) != protocol_kind::lsw)
      x_.host.refuse(r.owner, "lists a version of a page that has none");
    if (v.version > versions_max)
      x_.host.refuse(r.owner, "lists a page with more versions than there are");
    note_version(entry_of(v.page), v.version);
    ++x_.counts->notices;
  }
}

// --- messages

/// Gives the page to the ranks that wait for it, once it is here and a fiber has used it.
void lsw::give(lsw_page& page) {
  if (!page.owns || page.held != 0) return;
  if (!page.used && holds(rule::use_before_leaving)) return;
  if (waiting_readers* readers = std::exchange(page.readers, nullptr)) {
    // A copy bears the last closed version: what was stored since then belongs to a later one.
    const std::uint32_t version = page.version + (page.open && !holds(rule::stamp_closed) ? 1 : 0);
    for (std::uint16_t to : readers->ranks) send_page(page, page_message::read_reply, version, to);
    std::pmr::polymorphic_allocator<>(x_.host.memory()).delete_object(readers);
  }
  if (!page.has_next || (page.pinned != access::none && holds(rule::pinned_stays))) return;
  page.has_next = false;
  if (page.open && page.may == access::store && page.used) {
    if (holds(rule::count_at_transfer)) (void)next_version(page);
    page.left_with = page.version;
  }
  page.owns = page.used = false;
  if (page.may == access::store) table_.set_may(page, access::load);
  send_page(page, page_message::own_grant, page.version, page.next);
}

void lsw::wait_for_copy(lsw_page& page, std::uint16_t reader) {
  std::pmr::polymorphic_allocator<> memory(x_.host.memory());
  if (page.readers == nullptr) page.readers = memory.new_object<waiting_readers>(x_.host.memory());
  page.readers->ranks.push_back(reader);
}

void lsw::send_page(lsw_page& page, page_message what, std::uint32_t version, int to) {
  const page_number number = table_.number_of(page);
  x_.begin({.what = what, .number = number, .first = version});
  x_.send(to, {x_.host.bytes(number), page_bytes});
}

void lsw::take_bytes(page_message_reader& from, const message_head& head, lsw_page& page) {
  from.require(head.first <= versions_max, "sends a page with more versions than there are");
  page.copy = true;
  page.version = head.first;
  std::memcpy(x_.host.bytes(head.number), from.take_bytes(page_bytes).data(), page_bytes);
  ++x_.counts->pages_fetched;
}

void lsw::receive(page_message_reader& from, const message_head& head) {
  const page_number number = head.number;
  lsw_page& page = checked_page(from, number);
  const auto asker = static_cast<std::uint16_t>(from.from());
  switch (head.what) {
    case page_message::own_request: {
      from.require(x_.layout.home(number) == x_.me, "asks for a page whose home is another rank");
      const int last = std::exchange(page.last, asker);
      x_.begin({.what = page_message::own_forward, .rank = asker, .number = number});
      return x_.send(last);
    }
    case page_message::read_request:
      from.require(x_.layout.home(number) == x_.me, "asks for a page whose home is another rank");
      x_.begin({.what = page_message::read_forward, .rank = asker, .number = number});
      return x_.send(page.last);
    case page_message::own_forward:
      from.require(!page.has_next && head.rank != x_.me, "forwards a second request for a page");
      page.has_next = true;
      page.next = head.rank;
      return give(page);
    case page_message::read_forward:
      from.require(head.rank != x_.me, "forwards a rank's request to itself");
      wait_for_copy(page, head.rank);
      return give(page);
    case page_message::own_grant:
      from.require(page.asked != 0 && !page.owns, "gives a page that nobody asked for");
      take_bytes(from, head, page);
      page.owns = true;
      page.used = false;
      x_.faults_under_way -= page.asked;
      page.asked = 0;
      return provide(page);
    case page_message::read_reply:
      from.require(page.asked != 0 && !page.owns, "sends a copy that nobody asked for");
      --page.asked;
      --x_.faults_under_way;
      take_bytes(from, head, page);
      if (!holds(rule::check_version_on_arrival)) page.needed = std::min(page.needed, page.version);
      return provide(page);
    default:
      from.refuse("is of another protocol");
  }
}

}  // namespace sojourn::detail::pages
